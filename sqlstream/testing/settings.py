"""How Spark is set for unit tests: what the target says about SQL, and else what is fastest for a few rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlstream.project.values import Target
from sqlstream.spark.jvm.cluster import PARTITIONS
from sqlstream.spark.jvm.session import PROVIDER, ROCKSDB
from sqlstream.spark.storage.storage import CHECKPOINT_FILES, PLAIN_FILES

_MEANING = ("spark.sql.", "spark.default.parallelism")
"""The settings of a target that may change what a query gives."""

QUICK = {
    "spark.default.parallelism": "1",
    "spark.log.level": "ERROR",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.ui.explainMode": "simple",
    PARTITIONS: "1",
    CHECKPOINT_FILES: PLAIN_FILES,
}
"""A few rows need one partition, and no code that is generated and compiled for them; all progress of a case is looked
at in its end.
"""


def target_of_tests(target: Target) -> Target:
    """Returns `target` as unit tests run on it: on this machine, without packages, and with its settings of SQL."""
    said = {
        name: value
        for name, value in target.spark.items()
        if isinstance(value, str) and name.startswith(_MEANING) and name not in (PARTITIONS, PROVIDER)
    }
    return replace(target, master="local[*]", remote=None, packages=(), spark={**QUICK, **said})


def session_settings(target: Target) -> Mapping[str, str]:
    """Returns what is set in the session of each case."""
    return {name: str(value) for name, value in target_of_tests(target).spark.items() if name.startswith("spark.sql.")}


IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's own choice of what keeps state."""


def state_provider(target: Target) -> str:
    """Returns what keeps the state of queries in `target`."""
    said = target.spark.get(PROVIDER)
    return said if isinstance(said, str) else (IN_MEMORY if target.is_local else ROCKSDB)


_BARE_FILES = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache": "true"}
"""Files without checksums beside them. RocksDB's are copied by Hadoop's usual file system and by no other."""


def state_settings(provider: str) -> Mapping[str, str]:
    """Returns what is set in the session of a case whose state `provider` keeps."""
    return {PROVIDER: provider, **(_BARE_FILES if provider == IN_MEMORY else {})}
