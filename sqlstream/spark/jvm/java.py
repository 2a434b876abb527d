"""Finds the Java that Spark will use, without starting Spark."""

from __future__ import annotations

import ctypes
import locale
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlstream.errors import Finding

MINIMUM_JAVA = 17
"""Spark 4 runs on Java 17 and later (https://spark.apache.org/docs/latest/#downloading)."""

TIMEOUT_SECONDS = 60.0
"""Time for `java -version`."""

UTF8_LOCALE = "C.UTF-8"
"""The locale for Java if that of the environment has another encoding. Each Linux of today has it."""

NO_UTF8 = (
    f"Java cannot read files whose names have other characters than ASCII: neither the locale of the environment nor "
    f"{UTF8_LOCALE} exists on this machine with the encoding UTF-8"
)
NO_UTF8_FIX = "install a UTF-8 locale, and set LC_ALL to its name"

_ALL_CATEGORIES = 0x1FBF
"""`LC_ALL_MASK` of glibc."""

_INSTALL = (
    f"install Java {MINIMUM_JAVA} or later, for example `apt-get install openjdk-17-jre-headless` or "
    "`brew install openjdk@17`, and set JAVA_HOME or PATH to it"
)
_RELEASE = re.compile(r'(?m)^JAVA_VERSION="((\d+)[^"]*)"')
_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


@dataclass(frozen=True)
class JavaRuntime:
    """An installed Java: the path of its `java`, its feature release (17, 21, ...) and its full version."""

    path: str
    release: int
    version: str


def find_java(env: Mapping[str, str], *, start: bool = True) -> JavaRuntime | Finding:
    """Returns the Java that Spark would start (JAVA_HOME first, then PATH), or a finding if it cannot be used.

    With `start` it runs `java -version`. Otherwise it prefers the version in the Java's own folder; whether that Java
    works then shows when Spark starts.
    """
    path = java_path(env)
    if path is None:
        return _java_missing(env.get("JAVA_HOME"))
    return (None if start else _read_release_file(path)) or _run_java(path, env)


def _read_release_file(path: str) -> JavaRuntime | None:
    """Returns the version in the file `release` beside bin/, None if it is missing or too old."""
    try:
        text = (Path(path).resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = _RELEASE.search(text)
    if match is None or int(match.group(2)) < MINIMUM_JAVA:
        return None
    return JavaRuntime(path, int(match.group(2)), match.group(1))


def _java_missing(home: str | None) -> Finding:
    if home:
        why = f"JAVA_HOME is {home}, which has no working bin/java"
        fix = f"set JAVA_HOME to the folder of a Java {MINIMUM_JAVA} or later, or unset it to use the one on the PATH"
        return Finding("java-missing", "Spark needs Java, but JAVA_HOME does not contain one", why, fix)
    why = "JAVA_HOME is not set and there is no `java` on the PATH"
    return Finding("java-missing", "Spark needs Java, but none was found", why, _INSTALL)


def java_path(env: Mapping[str, str]) -> str | None:
    """Returns the path of the `java` that Spark would start, None if there is none. Does not check that it works."""
    home = env.get("JAVA_HOME")
    if home:
        candidate = Path(home) / "bin" / "java"
        return str(candidate) if os.access(candidate, os.X_OK) else None
    return shutil.which("java", path=env.get("PATH", ""))


def _run_java(path: str, env: Mapping[str, str]) -> JavaRuntime | Finding:
    try:
        output = _version_output(path, env)
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"{path}: {error}"
        return Finding("java-missing", "Spark needs Java, but the one that was found does not start", problem, _INSTALL)
    match = _VERSION.search(output)
    if match is None:
        printed = _first_line(output) or "nothing"
        problem = f"`{path} -version` printed {printed}"
        return Finding("java-missing", "Spark needs Java, but the one that was found does not work", problem, _INSTALL)
    version, release = match.group(1), int(match.group(2))
    if release < MINIMUM_JAVA:
        problem = f"{path} is Java {release}; Spark 4 needs {MINIMUM_JAVA} or later"
        return Finding("java-too-old", f"Java {version} is too old for Spark", problem, _INSTALL)
    return JavaRuntime(path, release, version)


def _version_output(path: str, env: Mapping[str, str]) -> str:
    done = subprocess.run(  # noqa: S603 - the user's own Java
        [path, "-version"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=dict(env),
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return done.stderr + done.stdout


def _first_line(output: str) -> str:
    """Returns the first line that is not the JVM's note about options from an environment variable."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("Picked up ")), "")


def java_locale() -> dict[str, str] | None:
    """Returns the variables with which a Java process can name all files, none if the environment is fine as it is.
    Returns None if this machine has no such locale.

    Java decodes the names of files with the encoding of the locale, and ignores the locale if one of its categories
    does not exist (`setlocale(LC_ALL, "")`). A service or a cron job often has `LC_ALL=C`.
    """
    if sys.platform != "linux" or _is_utf8(""):  # elsewhere file names are always Unicode
        return {}
    return {"LC_ALL": UTF8_LOCALE} if _is_utf8(UTF8_LOCALE) else None


def _is_utf8(name: str) -> bool:
    """Returns whether the locale `name` exists and has the encoding UTF-8. An empty name is that of the environment."""
    library = ctypes.CDLL(None)
    library.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    library.newlocale.restype = ctypes.c_void_p
    library.nl_langinfo_l.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.nl_langinfo_l.restype = ctypes.c_char_p
    library.freelocale.argtypes = (ctypes.c_void_p,)
    made = library.newlocale(_ALL_CATEGORIES, name.encode(), None)
    if made is None:
        return False
    encoding = library.nl_langinfo_l(locale.CODESET, made).decode("ascii")
    library.freelocale(made)
    return bool(encoding == "UTF-8")
