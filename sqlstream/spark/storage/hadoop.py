"""Hadoop's file systems, with which Spark can access any URI. Not available over Spark Connect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import JVM_ERRORS, causes_of, jvm_of


def default_file_system(session: SparkSession) -> str:
    """Returns the URI of the file system for paths without a scheme (default: `file:///`)."""
    return str(session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))  # noqa: SLF001


def hadoop_file_system(session: SparkSession, uri: str) -> tuple[Any, Callable[[str], Any]]:
    """Returns Hadoop's file system for `uri`, and the function that creates its paths."""
    jvm = jvm_of(session)
    make_path = jvm.org.apache.hadoop.fs.Path
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return make_path(uri).getFileSystem(configuration), make_path


def hadoop_exists(session: SparkSession, uri: str) -> bool:
    """Returns whether a file or folder exists; `uri` is encoded as in Spark's logs (`%20` for a space)."""
    path = jvm_of(session).org.apache.hadoop.fs.Path(jvm_of(session).java.net.URI(uri))
    system = path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
    return bool(system.exists(path))


def hadoop_replace(session: SparkSession, source: str, destination: str) -> bool:
    """Atomically renames the file `source` over `destination` with Hadoop's FileContext. Returns whether the file
    system supports this; some object stores do not.
    """
    jvm = jvm_of(session)
    fs = jvm.org.apache.hadoop.fs
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    try:
        context = fs.FileContext.getFileContext(fs.Path(destination).toUri(), configuration)
    except JVM_ERRORS as error:
        if any(cause.kind.endswith(".UnsupportedFileSystemException") for cause in causes_of(error)):
            return False
        raise
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    options = gateway.new_array(fs.Options.Rename, 1)
    options[0] = fs.Options.Rename.OVERWRITE
    context.rename(fs.Path(source), fs.Path(destination), options)
    return True


def hadoop_copy(session: SparkSession, source: str, destination: str) -> None:
    """Copies a file to a new path, and creates its folders. Raises: Spark's errors."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    (source_system, make_path), (system, _) = (hadoop_file_system(session, uri) for uri in (source, destination))
    files = jvm_of(session).org.apache.hadoop.fs.FileUtil
    files.copy(source_system, make_path(source), system, make_path(destination), False, configuration)
