"""The storage of a target or an output: the files at any path or URI, local or of Hadoop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.errors import FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.files.paths import escaped
from sqlstream.spark.jvm.errors import error_finding, host_fix
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, is_connect
from sqlstream.spark.jvm.jars import FILES_JAR
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.hadoop import (
    HadoopStorage,
    creates_once,
    default_file_system,
    hadoop_exists,
    streams_files,
)
from sqlstream.spark.storage.local import FILE_URI, LocalStorage, local_path
from sqlstream.state.layout import archive_folder
from sqlstream.state.output_files import StoredFile

CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
"""Spark's setting for the class that writes the files of a checkpoint and of a file sink's log."""

PLAIN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes the same files with the same renames as Spark's default for local folders. The default starts a `readlink`
process for each file access, which takes 40 % of the time of a small batch.
"""

OBJECT_STORE_FILES = "sqlstream.ObjectStoreFiles"
"""Writes the same files to an object store with one request each, see `ObjectStoreFiles.java`."""


class Storage(Protocol):
    """A folder tree; paths are absolute paths or URIs."""

    def read_text(self, path: str) -> str | None:
        """Returns the file's text, None if it does not exist."""

    def write_text(self, path: str, text: str) -> None:
        """Atomically writes the file, and creates its folders."""

    def names(self, folder: str) -> tuple[str, ...]:
        """Returns the names in `folder`, none if it does not exist."""

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """Returns all files in `folder` and its subfolders, none if it does not exist."""

    def exists(self, path: str) -> bool:
        """Returns whether a file or folder exists."""

    def modified(self, path: str) -> float | None:
        """Returns when the file was written, in seconds since 1970, None if it does not exist."""

    def move(self, source: str, destination: str) -> None:
        """Moves a file or folder to a new path, and creates its folders. Raises: OSError if `destination` exists."""

    def remove(self, folder: str) -> None:
        """Removes a folder with its content."""


def storage_for(path: str, session: SparkSession) -> tuple[Storage, str]:
    """Returns the storage of `path`, and `path` in the form that this storage accepts."""
    # otherwise a path without a scheme is one of HDFS or of an object store
    if default_file_system(session).startswith("file:"):
        local = FILE_URI.sub("", path)
        if local.startswith("/"):
            return LocalStorage(), local
    return HadoopStorage(session), path


def use_fast_checkpoint_files(session: SparkSession, *paths: str | None) -> None:
    """Makes the queries of `session` write checkpoint files with fewer processes or requests, if the user has not
    configured another class: if all `paths` are local, or if all are on object stores where only one of two processes
    can create a file. Raises: Spark's errors.
    """
    if session.conf.get(CHECKPOINT_FILES, ""):
        return
    written = [path for path in paths if path is not None]
    local = [isinstance(storage_for(path, session)[0], LocalStorage) for path in written]
    if all(local):
        session.conf.set(CHECKPOINT_FILES, PLAIN_FILES)
    elif (
        not any(local)
        and _has_object_store_files(session)
        and all(streams_files(session, path) and creates_once(session, path) for path in written)
    ):
        session.conf.set(CHECKPOINT_FILES, OBJECT_STORE_FILES)


def _has_object_store_files(session: SparkSession) -> bool:
    """Returns whether Spark has the class for checkpoints on object stores. Over Connect: no, storage is local."""
    if is_connect(session):
        return False
    conf = session.sparkContext.getConf()
    jars = ",".join(str(conf.get(name, "")) for name in ("spark.jars", "spark.yarn.dist.jars"))
    return FILES_JAR.name in {jar.strip().rpartition("/")[2] for jar in jars.split(",")}


def server_has(folder: str, session: SparkSession) -> bool:
    """Returns whether the Spark Connect server of `session` reads a file that this process writes to a local folder.

    Raises: OSError; Spark's other errors.
    """
    path = Path(folder, f"sqlstream-{uuid4().hex}.txt")  # Spark ignores hidden files
    path.write_text("shared\n")
    try:
        rows = session.read.format("binaryFile").load(f"file:{escaped(str(path))}").select("content").collect()
    except PySparkException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    finally:
        path.unlink()
    return [bytes(row.content) for row in rows] == [b"shared\n"]


_STORAGE_FIX = "fix storage: of the target, its permissions, or the packages: of its file system"


@contextmanager
def storage_problems(path: str, location: Location, secrets: Secrets) -> Iterator[None]:
    """Converts errors of reading or writing below `path` to a finding at `location`. Raises: FindingsError."""
    try:
        yield
    except (OSError, *SPARK_ERRORS) as error:
        finding = error_finding(
            error,
            code="storage-unusable",
            what=f"the storage `{path}` cannot be read or written",
            place=Place(location),
            secrets=secrets,
            fix=host_fix(error) or _STORAGE_FIX,
        )
        raise FindingsError([finding]) from error


class Storages(Protocol):
    """The storages of a query's checkpoint, output and sources."""

    def of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage of `path`, and `path` in the form that this storage accepts."""

    def exists(self, uri: str) -> bool:
        """Returns whether a file exists; `uri` is encoded as in Spark's logs (`%20` for a space)."""


class SessionStorages:
    """The storages that a session can access."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def start(self) -> SparkSession:
        """Returns the session, which has started."""
        return self.session

    def of(self, path: str) -> tuple[Storage, str]:
        return storage_for(path, self.session)

    def exists(self, uri: str) -> bool:
        local = local_path(uri)
        return hadoop_exists(self.session, uri) if local is None else local.exists()


def free_archive(storage: Storage, path: str) -> str:
    """Returns the path in the archive beside the output `path` to which its content can move."""
    folder = archive_folder(path)
    taken = [int(name) for name in storage.names(folder) if name.isdigit()]
    return f"{folder}/{max(taken, default=0) + 1}"
