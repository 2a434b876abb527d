"""Finds a target's storage, reads and writes the small files in it, and locks folders."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from pyspark.sql import SparkSession

from sqlstream.errors import FindingsError
from sqlstream.location import Location, Place
from sqlstream.spark.jvm.errors import error_finding, host_fix
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.file_lock import NoFileLocksError, file_lock
from sqlstream.spark.storage.hadoop import default_file_system, hadoop_exists, hadoop_file_system, hadoop_replace
from sqlstream.spark.storage.held_lock import HeldLock, KeptLock
from sqlstream.spark.storage.lease import lease, this_holder
from sqlstream.spark.storage.lease_files import HadoopLeaseFiles, LocalLeaseFiles
from sqlstream.state.layout import lease_path, lock_path
from sqlstream.state.output_files import StoredFile
from sqlstream.state.runs.lease import PERIOD_SECONDS

CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
"""Spark's setting for the class that writes the files of a checkpoint and of a file sink's log."""

PLAIN_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes the same files with the same renames as Spark's default for local folders. The default starts a `readlink`
process for each file access, which takes 40 % of the time of a small batch.
"""

LEASE_PERIOD = "spark.sqlstream.lease.period"
"""A setting for tests: the seconds between two heartbeats of a lease."""

FILE_URI = re.compile(r"file:(?://)?(?=/(?!/))")
"""The start of the URI of a local path. The rest is the plain path: Hadoop does not decode `%20` either."""


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

    def lock(self, root: str, waiting: Callable[[str], None]) -> AbstractContextManager[HeldLock]:
        """Locks the folder `root` of a query while the body runs, and creates it if needed.

        Passes a message to `waiting` before it waits for another process. Raises: LockedError.
        """


class LocalStorage:
    """Storage on the local file system."""

    def read_text(self, path: str) -> str | None:
        """See `Storage`."""
        try:
            return _decode(Path(path).read_bytes())
        except FileNotFoundError:
            return None

    def write_text(self, path: str, text: str) -> None:
        """See `Storage`. Syncs the text to disk before the rename."""
        final = Path(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        aside = final.with_name(f".{final.name}.{os.getpid()}")
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(final)

    def names(self, folder: str) -> tuple[str, ...]:
        """See `Storage`."""
        try:
            return tuple(sorted(path.name for path in Path(folder).iterdir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """See `Storage`."""
        walked = os.walk(folder, onerror=_ignore_missing)
        paths = (Path(parent, name) for parent, _, names in walked for name in names)
        found = (_stored(path, folder) for path in paths)
        return tuple(sorted(file for file in found if file is not None))

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        return Path(path).exists()

    def modified(self, path: str) -> float | None:
        """See `Storage`."""
        return Path(path).stat().st_mtime if self.exists(path) else None

    def move(self, source: str, destination: str) -> None:
        """See `Storage`."""
        final = Path(destination)
        final.parent.mkdir(parents=True, exist_ok=True)
        if final.exists():  # a rename would replace an empty folder
            raise FileExistsError(f"{destination} exists")
        Path(source).rename(final)

    def remove(self, folder: str) -> None:
        """See `Storage`."""
        shutil.rmtree(folder)

    @contextmanager
    def lock(self, root: str, waiting: Callable[[str], None]) -> Iterator[HeldLock]:
        """See `Storage`. Uses a file lock, or a lease where the file system has no locks."""
        with ExitStack() as stack:
            held: HeldLock = KeptLock()
            try:
                stack.enter_context(file_lock(Path(lock_path(root))))
            except NoFileLocksError:
                files = LocalLeaseFiles(lease_path(root))
                held = stack.enter_context(lease(files, this_holder(PERIOD_SECONDS), waiting))
            yield held


class HadoopStorage:
    """Storage at any URI that Spark can access, with Hadoop's file systems."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def read_text(self, path: str) -> str | None:
        """See `Storage`."""
        system, make_path = hadoop_file_system(self._session, path)
        if not system.exists(make_path(path)):
            return None
        stream = system.open(make_path(path))
        try:
            return _decode(bytes(stream.readAllBytes()))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """See `Storage`. Writes another file, and renames it over the old one.

        A file system that cannot do this is an object store, which shows a file only when it is complete.
        """
        folder, _, name = path.rpartition("/")
        aside = f"{folder}/.{name}.{os.getpid()}"
        self._write(aside, text)
        if not hadoop_replace(self._session, aside, path):
            self._write(path, text)
            system, make_path = hadoop_file_system(self._session, aside)
            system.delete(make_path(aside), False)

    def _write(self, path: str, text: str) -> None:
        system, make_path = hadoop_file_system(self._session, path)
        stream = system.create(make_path(path), True)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()

    def names(self, folder: str) -> tuple[str, ...]:
        """See `Storage`."""
        system, make_path = hadoop_file_system(self._session, folder)
        if not system.exists(make_path(folder)):
            return ()
        return tuple(sorted(status.getPath().getName() for status in system.listStatus(make_path(folder))))

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """See `Storage`."""
        system, make_path = hadoop_file_system(self._session, folder)
        root = make_path(folder)
        if not system.exists(root):
            return ()
        prefix = f"{system.makeQualified(root).toString().rstrip('/')}/"
        listed = system.listFiles(root, True)
        found = []
        while listed.hasNext():
            status = listed.next()
            name = status.getPath().toString().removeprefix(prefix)
            found.append(StoredFile(name, status.getLen(), status.getModificationTime()))
        return tuple(sorted(found))

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        system, make_path = hadoop_file_system(self._session, path)
        return bool(system.exists(make_path(path)))

    def modified(self, path: str) -> float | None:
        """See `Storage`."""
        system, make_path = hadoop_file_system(self._session, path)
        if not system.exists(make_path(path)):
            return None
        return float(system.getFileStatus(make_path(path)).getModificationTime()) / 1000

    def move(self, source: str, destination: str) -> None:
        """See `Storage`. On an object store this is a copy, and not atomic."""
        system, make_path = hadoop_file_system(self._session, destination)
        final = make_path(destination)
        system.mkdirs(final.getParent())
        if system.exists(final):  # a rename would move into an existing folder
            raise FileExistsError(f"{destination} exists")
        if not system.rename(make_path(source), final):
            raise OSError(f"{source} cannot be moved to {destination}")

    def remove(self, folder: str) -> None:
        """See `Storage`."""
        system, make_path = hadoop_file_system(self._session, folder)
        system.delete(make_path(folder), True)

    def lock(self, root: str, waiting: Callable[[str], None]) -> AbstractContextManager[HeldLock]:
        """See `Storage`. Uses a lease, because these file systems have no locks."""
        period = float(self._session.conf.get(LEASE_PERIOD, None) or PERIOD_SECONDS)
        return lease(HadoopLeaseFiles(self._session, lease_path(root)), this_holder(period), waiting)


def _ignore_missing(error: OSError) -> None:
    """Ignores a folder that does not exist. Raises: OSError for other errors."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _stored(path: Path, folder: str) -> StoredFile | None:
    """Returns a file, None if it has been removed since its folder was listed."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return StoredFile(path.relative_to(folder).as_posix(), status.st_size, status.st_mtime_ns // 1_000_000)


def storage_for(path: str, session: SparkSession) -> tuple[Storage, str]:
    """Returns the storage of `path`, and `path` in the form that this storage accepts."""
    if default_file_system(session).startswith("file:"):
        local = FILE_URI.sub("", path)
        if local.startswith("/"):
            return LocalStorage(), local
    return HadoopStorage(session), path


def use_fast_checkpoint_files(session: SparkSession, *paths: str | None) -> None:
    """Makes the queries of `session` write checkpoint files faster, if all `paths` are local and the user has not
    configured another class.
    """
    storages = [storage_for(path, session)[0] for path in paths if path is not None]
    if all(isinstance(storage, LocalStorage) for storage in storages) and not session.conf.get(CHECKPOINT_FILES, ""):
        session.conf.set(CHECKPOINT_FILES, PLAIN_FILES)


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


def _decode(data: bytes) -> str:
    """Returns a ledger's bytes as text. Accepts torn bytes, so that the parser of ledgers reports the error."""
    return data.decode("utf-8", errors="replace")


_DEFAULT_SYSTEM = {"spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name"}
"""Settings of a target for the file system of paths without a scheme."""

_CONFIGURED_BY = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS")
"""Environment variables that can change the same setting."""


class Storages(Protocol):
    """The storages of a query's checkpoint, output and sources."""

    def of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage of `path`, and `path` in the form that this storage accepts."""

    def exists(self, uri: str) -> bool:
        """Returns whether a file exists; `uri` is encoded as in Spark's logs (`%20` for a space)."""


class SessionStorages:
    """The storages that a session can access."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def of(self, path: str) -> tuple[Storage, str]:
        """See `Storages`."""
        return storage_for(path, self._session)

    def exists(self, uri: str) -> bool:
        """See `Storages`."""
        local = local_path(uri)
        return hadoop_exists(self._session, uri) if local is None else local.exists()


def local_path(uri: str) -> Path | None:
    """Returns the path of an encoded URI of a local file, None for any other URI."""
    local = FILE_URI.match(uri)
    return Path(unquote(uri[local.end() :])) if local else None


def storage_without_spark(
    path: str, settings: Mapping[str, object], env: Mapping[str, str]
) -> tuple[Storage, str] | None:
    """Returns the same as `storage_for` for a local path. None if only Spark can decide: the path is not local, or the
    target's `settings` or a configuration folder of Hadoop or Spark in `env` can change its file system.
    """
    local = FILE_URI.sub("", path)
    if not local.startswith("/") or _DEFAULT_SYSTEM & settings.keys() or any(env.get(name) for name in _CONFIGURED_BY):
        return None
    return LocalStorage(), local
