"""The class archive: Spark's classes, loaded and verified in advance, which halves Spark's start time.

It is a dynamic archive of HotSpot (https://docs.oracle.com/en/java/javase/21/vm/class-data-sharing.html). The user's
cache folder has one for each Java and set of jars. From Java 19 on, the JVM of a run writes it at its end, and again
once it does not fit any more. With Java 17 and 18 only `debug --class-archive build` does, by a run of `training/`, a
project that is part of the package. The JVM ignores an archive that does not match.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from sqlstream.errors import FindingsError, UsageError
from sqlstream.spark.jvm.java import JavaRuntime, find_java, java_path
from sqlstream.spark.jvm.pyspark_package import check_start

ARCHIVE_VARIABLE = "SQLSTREAM_CLASS_ARCHIVE"
"""The environment variable that disables archives with the value `off`."""

FIRST_KEEPING_JAVA = 19
"""The first Java with AutoCreateSharedArchive (https://bugs.openjdk.org/browse/JDK-8261455)."""

TRAINING = Path(__file__).parent / "training"
"""The project whose run loads the classes. Its project.yml lacks the last line, which `_train` adds."""

COMMAND = "sqlstream debug --class-archive build"

_LOG_OPTIONS = "-Xlog:disable -Xlog:all=warning:stderr -XX:+IgnoreUnrecognizedVMOptions"
"""Sends the JVM's warnings about an archive to the log. By default they go to stdout, between the rows."""

_MAGIC = bytes.fromhex("a8ab0bf0")
"""The first bytes of a complete dynamic archive (CDS_DYNAMIC_ARCHIVE_MAGIC; all machines that run Spark have this byte
order). The JVM writes them last."""

_LONGEST_SECONDS = 600.0


@dataclass(frozen=True)
class BuiltArchive:
    """An archive, and how long the build took: 0 seconds if it existed already."""

    path: Path
    seconds: float

    @property
    def megabytes(self) -> int:
        """The size of the archive."""
        return _megabytes(self.path)


def archive_path(env: Mapping[str, str]) -> Path | None:
    """Returns the path of the archive for this Java and this Spark, None if archives are not possible."""
    java, folder = java_path(env), cache_folder(env)
    if _is_disabled(env) or java is None or folder is None:
        return None
    try:
        return folder / f"spark-{_digest(Path(java).resolve(), Path(_find_spark_home()) / 'jars')}.jsa"
    except OSError:
        return None


def cache_folder(env: Mapping[str, str]) -> Path | None:
    """Returns the user's cache folder for sqlstream, None if the user has no home folder."""
    home = env.get("HOME") or env.get("USERPROFILE")
    if sys.platform != "darwin" and env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "sqlstream"
    if not home:
        return None
    return Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "sqlstream"


def use_options(env: Mapping[str, str], *, keep: bool = True) -> str:
    """Returns the options for a JVM that uses the archive, empty if it cannot. If Java can, `keep` lets the JVM write
    an archive that is missing or does not match. A JVM that loads few of Spark's classes must not.
    """
    archive = archive_path(env)
    if archive is None or " " in str(archive):  # Spark splits options at spaces
        return ""
    options = f"{_LOG_OPTIONS} -XX:SharedArchiveFile={archive}"
    if keep and _keeps_itself(env):
        with suppress(OSError):  # without the folder, the JVM only warns
            archive.parent.mkdir(parents=True, exist_ok=True)
        return f"{options} -XX:+AutoCreateSharedArchive"
    return options if is_complete(archive) else ""


def is_complete(archive: Path) -> bool:
    """Returns whether the file is an archive that the JVM has written completely."""
    with suppress(OSError), archive.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def build(env: Mapping[str, str]) -> BuiltArchive:
    """Builds the archive if it does not exist.

    Raises: UsageError if it cannot be built here; FindingsError without a usable Spark or Java; OSError.
    """
    if _is_disabled(env):
        raise UsageError(f"{ARCHIVE_VARIABLE}=off disables class archives; unset it to build one")
    wrong = check_start(env)
    if wrong:
        raise FindingsError(wrong)
    archive, began = archive_path(env), time.monotonic()
    if archive is None:
        raise UsageError("there is no folder for the class archive; set HOME or XDG_CACHE_HOME")
    if is_complete(archive):
        return BuiltArchive(archive, 0.0)
    archive.parent.mkdir(parents=True, exist_ok=True)
    new = archive.with_suffix(f".{os.getpid()}")
    last_line = _train(new, env)
    if not is_complete(new):
        new.unlink(missing_ok=True)
        raise UsageError(f"Java wrote no class archive; the training run ended with: {last_line}")
    new.replace(archive)
    return BuiltArchive(archive, time.monotonic() - began)


def remove(env: Mapping[str, str]) -> list[tuple[Path, int]]:
    """Removes the archives of every Java and Spark, and returns them with their sizes in MB. Raises: OSError."""
    folder = cache_folder(env)
    removed = []
    for path in sorted(folder.glob("spark-*")) if folder is not None else ():
        if path.suffix == ".jsa":
            removed.append((path, _megabytes(path)))
        path.unlink(missing_ok=True)
    return removed


def describe(env: Mapping[str, str]) -> str:
    """Returns the state of the archive in a few words."""
    if _is_disabled(env):
        return f"off ({ARCHIVE_VARIABLE})"
    archive = archive_path(env)
    if archive is None:
        return "none: there is no home folder"
    if is_complete(archive):
        return f"{archive} ({_megabytes(archive)} MB)"
    if _keeps_itself(env):
        return "none: the next run writes it at its end, and Spark then starts in about half the time"
    return f"none; `{COMMAND}` makes Spark start in about half the time"


def _is_disabled(env: Mapping[str, str]) -> bool:
    return env.get(ARCHIVE_VARIABLE, "").lower() == "off"


def _keeps_itself(env: Mapping[str, str]) -> bool:
    """Whether the JVM writes its archive without a command."""
    java = find_java(env, start=False)
    return isinstance(java, JavaRuntime) and java.release >= FIRST_KEEPING_JAVA


def _megabytes(path: Path) -> int:
    return round(path.stat().st_size / 1_000_000)


def _train(archive: Path, env: Mapping[str, str]) -> str:
    """Runs the training project in a JVM that writes `archive` at its end. Returns the last line of its output."""
    with tempfile.TemporaryDirectory(prefix="sqlstream-training-") as folder:
        project = Path(shutil.copytree(TRAINING, Path(folder) / "project"))
        with (project / "project.yml").open("a") as settings:
            options = f"{_LOG_OPTIONS} -XX:ArchiveClassesAtExit={archive}"
            settings.write(f"      spark.driver.extraJavaOptions: '{options}'\n")
        done = subprocess.run(  # noqa: S603 - runs sqlstream itself
            [sys.executable, "-m", "sqlstream", "run", "--project-dir", str(project)],
            env={**env, ARCHIVE_VARIABLE: "off"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # the JVM inherits the pipe, so this waits until the JVM ends
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        return (done.stdout.decode(errors="replace").strip().splitlines() or ["no output"])[-1]


def _digest(java: Path, jars: Path) -> str:
    """Returns the digest of what an archive depends on: the Java and the jars, each with its size and time."""
    digest = blake2b(digest_size=10)
    parts = [java, java.parents[1] / "lib" / "modules", *sorted(jars.iterdir())]
    for part in parts:
        status = part.stat()
        digest.update(f"{part}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
