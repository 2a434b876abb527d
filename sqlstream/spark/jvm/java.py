"""Finding the Java that Spark will use, without Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlstream.errors import Finding

MINIMUM_JAVA = 17
"""Spark 4 runs on Java 17 and later (https://spark.apache.org/docs/latest/#downloading)."""

TIMEOUT_SECONDS = 60.0
"""A Java that does not tell its version by then does not work."""

_INSTALL = (
    f"install Java {MINIMUM_JAVA} or later, for example `apt-get install openjdk-17-jre-headless` or "
    "`brew install openjdk@17`, and set JAVA_HOME or PATH to it"
)
_RELEASE = re.compile(r'(?m)^JAVA_VERSION="((\d+)[^"]*)"')
_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


@dataclass(frozen=True)
class Java:
    """A Java runtime: the path of its `java`, its feature release (17, 21, ...) and its full version."""

    path: str
    release: int
    version: str


def find_java(env: Mapping[str, str], *, start: bool = True) -> Java | Finding:
    """Returns the Java that Spark would start (JAVA_HOME first, then PATH), or the finding that it cannot be used.

    Without `start` it is believed what the Java's own folder says of its version: whether it works shows when Spark
    starts.
    """
    path = java_path(env)
    if path is None:
        return _nowhere(env.get("JAVA_HOME"))
    written = None if start else _written_version(path)
    return written or _read_version(path, env)


def _written_version(path: str) -> Java | None:
    """What the file `release` says, which JDK and JRE have beside bin/, of a version that is late enough."""
    try:
        text = (Path(path).resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = _RELEASE.search(text)
    if match is None or int(match.group(2)) < MINIMUM_JAVA:
        return None
    return Java(path, int(match.group(2)), match.group(1))


def _nowhere(home: str | None) -> Finding:
    if home:
        why = f"JAVA_HOME is {home}, which has no working bin/java"
        fix = f"set JAVA_HOME to the folder of a Java {MINIMUM_JAVA} or later, or unset it to use the one on the PATH"
        return Finding("java-missing", "Spark needs Java, but JAVA_HOME does not contain one", why, fix)
    why = "JAVA_HOME is not set and there is no `java` on the PATH"
    return Finding("java-missing", "Spark needs Java, but none was found", why, _INSTALL)


def java_path(env: Mapping[str, str]) -> str | None:
    """Returns the `java` that Spark would start, whatever it is, None where there is none."""
    home = env.get("JAVA_HOME")
    if home:
        candidate = Path(home) / "bin" / "java"
        return str(candidate) if os.access(candidate, os.X_OK) else None
    return shutil.which("java", path=env.get("PATH", ""))


def _read_version(path: str, env: Mapping[str, str]) -> Java | Finding:
    try:
        said = _ask_version(path, env)
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"{path}: {error}"
        return Finding("java-missing", "Spark needs Java, but the one that was found does not start", problem, _INSTALL)
    match = _VERSION.search(said)
    if match is None:
        printed = _first_line(said) or "nothing"
        problem = f"`{path} -version` printed {printed}"
        return Finding("java-missing", "Spark needs Java, but the one that was found does not work", problem, _INSTALL)
    version, release = match.group(1), int(match.group(2))
    if release < MINIMUM_JAVA:
        problem = f"{path} is Java {release}; Spark 4 needs {MINIMUM_JAVA} or later"
        return Finding("java-too-old", f"Java {version} is too old for Spark", problem, _INSTALL)
    return Java(path, release, version)


def _ask_version(path: str, env: Mapping[str, str]) -> str:
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


def _first_line(said: str) -> str:
    """The first line that is about Java itself, not the JVM's note that it has read its options from a variable."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("Picked up ")), "")
