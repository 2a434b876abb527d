"""Spark's settings for the state of queries: where it is kept, how much memory it takes, how batches write it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlstream.project.configuration.target import Target

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_ROCKSDB_SETTINGS = "spark.sql.streaming.stateStore.rocksdb"
CHANGELOG = f"{_ROCKSDB_SETTINGS}.changelogCheckpointing.enabled"
IS_BOUNDED, MAX_MEGABYTES = f"{_ROCKSDB_SETTINGS}.boundedMemoryUsage", f"{_ROCKSDB_SETTINGS}.maxMemoryUsageMB"
MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"

DEFAULT_HEAP = 1024
"""Spark's default of `spark.driver.memory` and `spark.executor.memory`, in MiB."""
LEAST_OVERHEAD = 384
"""The least memory beside the heap that Spark plans for a process, in MiB. By default it is a tenth of the heap."""
SHARE = 0.5
"""RocksDB's share of the memory beside the heap. The rest is for Python, for buffers of the network and for Java."""

FINITE_MAINTENANCE = "2s"
"""How often state is tidied in queries that end by themselves. With Spark's 60 s, a run that is shorter would never
remove old files, so a query that runs every few minutes would keep the files of all its batches.
"""

_SIZE = re.compile(r"\s*(\d+)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)
_MEBIBYTES = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2}


def memory_settings(spark: Mapping[str, object], *, is_local: bool) -> dict[str, str]:
    """Returns the limit of RocksDB's memory in each process that keeps state, for a target with the settings `spark`:
    the driver of a local master, otherwise each executor. All queries share it.

    The limit is soft: RocksDB writes buffers to disk earlier and keeps fewer blocks in memory, and never fails.
    """
    return {IS_BOUNDED: "true", MAX_MEGABYTES: str(_max_megabytes(spark, "driver" if is_local else "executor"))}


def heap_bytes(target: Target) -> int | None:
    """Returns the size of the heap with the state of queries on a local master; None for others, which have several."""
    heap = _mebibytes(target.spark.get("spark.driver.memory")) or DEFAULT_HEAP
    return round(heap * 1024**2) if target.is_local and target.remote is None else None


def _max_megabytes(spark: Mapping[str, object], process: str) -> int:
    heap = _mebibytes(spark.get(f"spark.{process}.memory")) or DEFAULT_HEAP
    overhead = _mebibytes(spark.get(f"spark.{process}.memoryOverhead")) or max(LEAST_OVERHEAD, heap / 10)
    return max(1, round(SHARE * overhead))


def _mebibytes(text: object) -> float | None:
    """Returns a size as Spark reads it: a number without a unit is in MiB."""
    match = _SIZE.fullmatch(str(text or ""))
    return int(match[1]) * _MEBIBYTES[match[2].lower()] if match else None


def checkpoint_settings(*, ends: bool) -> dict[str, str]:
    """Returns how a query writes its state to the checkpoint. `ends`: the query ends by itself.

    A query that goes on writes only the changes of each batch, and Spark uploads a snapshot from time to time. One that
    ends may end before that, so each batch of it writes a snapshot: otherwise, each run would start with the changes
    of all runs before.
    """
    if ends:
        return {CHANGELOG: "false", MAINTENANCE: FINITE_MAINTENANCE}
    return {CHANGELOG: "true"}
