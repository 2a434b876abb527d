"""The class archive: Spark's classes, loaded and verified in advance, which halves Spark's start time.

It is a dynamic archive of HotSpot (https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html). The user's
cache folder has one for each Java and set of jars. The JVM ignores an archive that does not match.
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

ARCHIVE_VARIABLE = "SQLSTREAM_CLASS_ARCHIVE"
"""The environment variable that disables archives with the value `off`."""

LOG_OPTIONS = "-Xlog:disable -Xlog:all=warning:stderr -XX:+IgnoreUnrecognizedVMOptions"
"""Sends the JVM's warnings about an archive to the log. By default they go to stdout, between the rows."""

_MAGIC = bytes.fromhex("a8ab0bf0")
"""The first bytes of a complete dynamic archive (CDS_DYNAMIC_ARCHIVE_MAGIC; all machines that run Spark have this byte
order). The JVM writes them last."""


def archive_path(env: Mapping[str, str]) -> Path | None:
    """Returns the path of the archive for this Java and this Spark, None if archives are not possible."""
    java = java_path(env)
    folder = cache_folder(env)
    if is_disabled(env) or java is None or folder is None:
        return None
    try:
        return folder / f"spark-{_digest(Path(java).resolve(), Path(_find_spark_home()) / 'jars')}.jsa"
    except OSError:
        return None


def is_disabled(env: Mapping[str, str]) -> bool:
    """Returns whether the user has disabled archives."""
    return env.get(ARCHIVE_VARIABLE, "").lower() == "off"


def cache_folder(env: Mapping[str, str]) -> Path | None:
    """Returns the user's cache folder for sqlstream, None if the user has no home folder."""
    home = env.get("HOME") or env.get("USERPROFILE")
    if sys.platform != "darwin" and env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "sqlstream"
    if not home:
        return None
    return Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "sqlstream"


def is_complete(archive: Path) -> bool:
    """Returns whether the file is an archive that the JVM has written completely."""
    with suppress(OSError), archive.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def use_options(env: Mapping[str, str]) -> str:
    """Returns the options for a JVM that uses the archive, empty if there is no archive."""
    archive = archive_path(env)
    if archive is None or not is_complete(archive) or " " in str(archive):  # Spark splits options at spaces
        return ""
    with suppress(OSError):
        os.utime(archive)  # unused archives are removed
    return f"{LOG_OPTIONS} -XX:SharedArchiveFile={archive}"


def make_options(archive: Path) -> str:
    """Returns the options for a JVM that writes the archive when it ends."""
    return f"{LOG_OPTIONS} -XX:ArchiveClassesAtExit={archive}"


def _digest(java: Path, jars: Path) -> str:
    """Returns the digest of what an archive depends on: the Java and the jars, each with its size and time."""
    digest = blake2b(digest_size=10)
    parts = [java, java.parents[1] / "lib" / "modules", *sorted(jars.iterdir())]
    for part in parts:
        status = part.stat()
        digest.update(f"{part}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
