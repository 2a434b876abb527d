"""Which storage holds a path: what Spark says, or what is certain without it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from pyspark.sql import SparkSession

from sqlstream.spark.storage.hadoop import hadoop_exists
from sqlstream.spark.storage.storage import FILE_URI, LocalStorage, Storage, storage_for

_DEFAULT_SYSTEM = {"spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name"}
"""Settings of a target that say to which file system a path without a scheme belongs."""

_CONFIGURED_BY = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS")
"""Environment variables through which that may be said too."""


class Storages(Protocol):
    """All storages that a query's checkpoint, output and sources lie in."""

    def of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage that holds `path`, and `path` as that storage takes it."""

    def exists(self, uri: str) -> bool:
        """Returns whether there is a file; `uri` is encoded, as Spark's logs have it (`%20` for a blank)."""


class SessionStorages:
    """The storages that a session reaches."""

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
    """Returns what Spark would say of a local path, None where only Spark can tell: the path is no local one, or the
    `settings` of the target, or a folder of Hadoop's or Spark's configuration in `env`, may put it elsewhere.
    """
    local = FILE_URI.sub("", path)
    if not local.startswith("/") or _DEFAULT_SYSTEM & settings.keys() or any(env.get(name) for name in _CONFIGURED_BY):
        return None
    return LocalStorage(), local
