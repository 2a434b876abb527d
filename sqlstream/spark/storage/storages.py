"""Finds the storage of a path, with or without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from pyspark.sql import SparkSession

from sqlstream.spark.storage.hadoop import hadoop_exists
from sqlstream.spark.storage.storage import FILE_URI, LocalStorage, Storage, storage_for

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
