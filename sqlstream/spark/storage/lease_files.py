"""The files of a lease: created once, listed, read and removed."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.storage.hadoop import hadoop_file_system


class LeaseFiles(Protocol):
    """The files in the folder of a lease. Each method raises OSError or Spark's errors."""

    def names(self) -> tuple[str, ...]:
        """Returns the names of all files, none if the folder does not exist."""

    def read(self, name: str) -> str | None:
        """Returns the text of a file, None if it does not exist."""

    def create(self, name: str, text: str = "") -> bool:
        """Creates a file, and its folder, and returns whether it is this text that the file now contains: if the file
        exists, it does not change.
        """

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""


class LocalLeaseFiles:
    """A folder of the local file system, perhaps a network file system without locks."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def names(self) -> tuple[str, ...]:
        """See `LeaseFiles`."""
        try:
            return tuple(path.name for path in self._folder.iterdir())
        except FileNotFoundError:
            return ()

    def read(self, name: str) -> str | None:
        """See `LeaseFiles`."""
        try:
            return (self._folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def create(self, name: str, text: str = "") -> bool:
        """See `LeaseFiles`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with (self._folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            return self.read(name) == text
        return True

    def remove(self, name: str) -> None:
        """See `LeaseFiles`."""
        (self._folder / name).unlink(missing_ok=True)


class HadoopLeaseFiles:
    """A folder in one of Hadoop's file systems. It works until the JVM ends, also after Spark has stopped.

    Object stores charge for requests, so nothing asks whether a file exists before it is needed.
    """

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._system, self._make_path = hadoop_file_system(session, folder)
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        """See `LeaseFiles`."""
        folder = self._make_path(self._folder)
        try:
            listed = self._system.listStatus(folder)
        except SPARK_ERRORS:
            if self._system.exists(folder):
                raise
            return ()
        return tuple(status.getPath().getName() for status in listed)

    def read(self, name: str) -> str | None:
        """See `LeaseFiles`."""
        path = self._path(name)
        try:
            stream = self._system.open(path)
        except SPARK_ERRORS:
            if self._system.exists(path):
                raise
            return None
        try:
            return bytes(stream.readAllBytes()).decode("utf-8", errors="replace")
        finally:
            stream.close()

    def create(self, name: str, text: str = "") -> bool:
        """See `LeaseFiles`. Some file systems check only when the file is closed. A few do not check whether another
        process creates the file at the same time: then the last one stays.
        """
        try:
            stream = self._system.create(self._path(name), False)
            try:
                stream.write(bytearray(text.encode("utf-8")))
            finally:
                stream.close()
        except SPARK_ERRORS:
            found = self.read(name)
            if found is None:
                raise
            return found == text
        return True

    def remove(self, name: str) -> None:
        """See `LeaseFiles`."""
        self._system.delete(self._path(name), False)

    def _path(self, name: str) -> object:
        return self._make_path(f"{self._folder}/{name}")
