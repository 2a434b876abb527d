"""Hadoop's file systems, with which Spark can access any URI. Over Connect: not available."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import JVM_ERRORS, causes_of, is_connect, jvm_of
from sqlstream.state.output_files import StoredFile


def default_file_system(session: SparkSession) -> str:
    """Returns the URI of the file system for paths without a scheme (default: `file:///`). Over Connect: from the
    setting `spark.hadoop.fs.defaultFS`.
    """
    if is_connect(session):
        return str(session.conf.get("spark.hadoop.fs.defaultFS", "file:///"))
    return str(session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))  # noqa: SLF001


def hadoop_file_system(session: SparkSession, uri: str) -> tuple[Any, Callable[[str], Any]]:
    """Returns Hadoop's file system for `uri`, and the function that creates its paths."""
    jvm = jvm_of(session)
    make_path = jvm.org.apache.hadoop.fs.Path
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return make_path(uri).getFileSystem(configuration), make_path


_CONDITIONAL = "fs.option.create.conditional.overwrite"
"""An option and a capability: the request that writes a file fails if the file exists. Without it, S3's client only
asks before it writes whether the file exists (seen in Hadoop 3.5).
"""


def create_new(system: Any, path: object) -> Any:
    """Returns a stream to a new file of Hadoop's file system `system`. Closing it fails if another process has created
    the file since, on stores that can tell.
    """
    builder = system.createFile(path).overwrite(False).recursive()
    if system.hasPathCapability(path, _CONDITIONAL):
        builder.must(_CONDITIONAL, True)
    return builder.build()


def creates_once(session: SparkSession, folder: str) -> bool:
    """Returns whether only one of two processes can create a file in `folder` at the same time. On S3 this needs
    conditional writes, which not every store has.

    The first call for a store writes a small file in the folder, twice, and removes it. Raises: Spark's errors, if
    nothing can be written there.
    """
    system, make_path = hadoop_file_system(session, folder)
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    known: dict[str, bool] = vars(gateway).setdefault("create_once", {})  # any other name is an object of the JVM
    store = str(system.getUri().toString())
    if store not in known:
        known[store] = _refuses_second_file(system, make_path(f"{folder}/.sqlstream-{uuid4().hex}"))
    return known[store]


def _refuses_second_file(system: Any, path: object) -> bool:
    first, second = create_new(system, path), None
    try:
        # an object store refuses the second file only when it is complete
        with _refusals():
            second = create_new(system, path)
        first.close()
        if second is None:
            return True
        is_written = False
        with _refusals():
            second.close()
            is_written = True
        return not is_written
    finally:
        system.delete(path, False)


@contextmanager
def _refusals() -> Iterator[None]:
    """Ends the body if a file exists. Raises: other errors."""
    try:
        yield
    except JVM_ERRORS as error:
        # HDFS sends the exception of the name node inside another one
        kinds = [
            str(cause.java.getClassName()) if cause.kind == "org.apache.hadoop.ipc.RemoteException" else cause.kind
            for cause in causes_of(error)
        ]
        if not any(kind.endswith(_EXISTS) for kind in kinds):
            raise


_EXISTS = (".FileAlreadyExistsException", ".RemoteFileChangedException", ".AlreadyBeingCreatedException")
"""The exceptions of HDFS and S3 for a file that another writer has created, or is creating."""


def streams_files(session: SparkSession, path: str) -> bool:
    """Returns whether the file system of `path` writes a file only when it is complete, if no other process has created
    it since, and can give it up until then, as S3.
    """
    system, make_path = hadoop_file_system(session, path)
    needed = (_CONDITIONAL, "fs.capability.outputstream.abortable")
    return all(system.hasPathCapability(make_path(path), name) for name in needed)


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
        # FileContext needs an AbstractFileSystem for the scheme, which not every connector has
        if any(cause.kind.endswith(".UnsupportedFileSystemException") for cause in causes_of(error)):
            return False
        raise
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    options = gateway.new_array(fs.Options.Rename, 1)
    options[0] = fs.Options.Rename.OVERWRITE
    context.rename(fs.Path(source), fs.Path(destination), options)
    return True


def hadoop_copy(session: SparkSession, source: str, destination: str) -> None:
    """Copies a file, or a folder with all files, to a new path, and creates its folders. Raises: Spark's errors."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    (source_system, make_path), (system, _) = (hadoop_file_system(session, uri) for uri in (source, destination))
    files = jvm_of(session).org.apache.hadoop.fs.FileUtil
    files.copy(source_system, make_path(source), system, make_path(destination), False, configuration)


class HadoopStorage:
    """Storage at any URI that Spark can access, with Hadoop's file systems."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def read_text(self, path: str) -> str | None:
        system, make_path = hadoop_file_system(self.session, path)
        if not system.exists(make_path(path)):
            return None
        stream = system.open(make_path(path))
        try:
            return bytes(stream.readAllBytes()).decode("utf-8", errors="replace")
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Writes another file, and renames it over the old one.

        A file system that cannot do this is an object store, which shows a file only when it is complete.
        """
        folder, _, name = path.rpartition("/")
        aside = f"{folder}/.{name}.{os.getpid()}"
        self._write(aside, text)
        if not hadoop_replace(self.session, aside, path):
            self._write(path, text)
            system, make_path = hadoop_file_system(self.session, aside)
            system.delete(make_path(aside), False)

    def _write(self, path: str, text: str) -> None:
        system, make_path = hadoop_file_system(self.session, path)
        stream = system.create(make_path(path), True)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()

    def names(self, folder: str) -> tuple[str, ...]:
        system, make_path = hadoop_file_system(self.session, folder)
        if not system.exists(make_path(folder)):
            return ()
        return tuple(sorted(status.getPath().getName() for status in system.listStatus(make_path(folder))))

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        system, make_path = hadoop_file_system(self.session, folder)
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
        system, make_path = hadoop_file_system(self.session, path)
        return bool(system.exists(make_path(path)))

    def modified(self, path: str) -> float | None:
        system, make_path = hadoop_file_system(self.session, path)
        if not system.exists(make_path(path)):
            return None
        return float(system.getFileStatus(make_path(path)).getModificationTime()) / 1000

    def move(self, source: str, destination: str) -> None:
        """On an object store this is a copy, and not atomic."""
        system, make_path = hadoop_file_system(self.session, destination)
        final = make_path(destination)
        system.mkdirs(final.getParent())
        if system.exists(final):  # a rename would move into an existing folder
            raise FileExistsError(f"{destination} exists")
        if not system.rename(make_path(source), final):
            raise OSError(f"{source} cannot be moved to {destination}")

    def remove(self, folder: str) -> None:
        system, make_path = hadoop_file_system(self.session, folder)
        system.delete(make_path(folder), True)
