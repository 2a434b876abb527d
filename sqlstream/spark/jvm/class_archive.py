"""A class archive: the JVM's own memory of Spark's classes, loaded and checked once, which halves Spark's start.

It is a dynamic archive of HotSpot (https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html), one for each
Java and set of jars, in the user's cache folder. The JVM itself sees whether an archive fits and goes on without one
that does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from sqlstream.spark.jvm.java import java_path

SWITCH = "SQLSTREAM_CLASS_ARCHIVE"
"""The environment variable that forbids archives with `off`."""

QUIET_JVM = "-Xlog:disable -Xlog:all=warning:stderr -XX:+IgnoreUnrecognizedVMOptions"
"""What the JVM has to say of an archive belongs into the log: by default it goes to stdout, among the rows."""

_MAGIC = bytes.fromhex("a8ab0bf0")
"""How a whole dynamic archive begins (CDS_DYNAMIC_ARCHIVE_MAGIC, in this order on every machine that Spark runs on);
the JVM writes it last."""


def archive_path(env: Mapping[str, str]) -> Path | None:
    """Returns where the archive for this Java and this Spark belongs, None where there can be none."""
    java = java_path(env)
    folder = cache_folder(env)
    if is_off(env) or java is None or folder is None:
        return None
    try:
        return folder / f"spark-{_digest(Path(java).resolve(), Path(_find_spark_home()) / 'jars')}.jsa"
    except OSError:
        return None


def is_off(env: Mapping[str, str]) -> bool:
    """Whether the user forbids archives."""
    return env.get(SWITCH, "").lower() == "off"


def cache_folder(env: Mapping[str, str]) -> Path | None:
    """Returns the folder for what sqlstream keeps between commands of one user and can make again, None where the user
    has no home.
    """
    home = env.get("HOME") or env.get("USERPROFILE")
    if sys.platform != "darwin" and env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "sqlstream"
    if not home:
        return None
    return Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "sqlstream"


def is_whole(archive: Path) -> bool:
    """Whether there is an archive that the JVM wrote to its end."""
    with suppress(OSError), archive.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def use_options(env: Mapping[str, str]) -> str:
    """Returns the options with which a JVM uses the archive, empty where there is none."""
    archive = archive_path(env)
    if archive is None or not is_whole(archive) or " " in str(archive):  # Spark splits the options at blanks
        return ""
    with suppress(OSError):
        os.utime(archive)  # the ones that nobody uses are dropped
    return f"{QUIET_JVM} -XX:SharedArchiveFile={archive}"


def make_options(archive: Path) -> str:
    """Returns the options with which a JVM writes the archive when it ends."""
    return f"{QUIET_JVM} -XX:ArchiveClassesAtExit={archive}"


def _digest(java: Path, jars: Path) -> str:
    """What an archive depends on: the Java, and each jar with its size and time."""
    made = blake2b(digest_size=10)
    parts = [java, java.parents[1] / "lib" / "modules", *sorted(jars.iterdir())]
    for part in parts:
        status = part.stat()
        made.update(f"{part}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogatepass"))
    return made.hexdigest()
