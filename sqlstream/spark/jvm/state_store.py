"""Spark's settings for the state of queries: where it is kept, how much memory it takes, how batches write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from sqlstream.project.configuration.target import Target

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_ROCKSDB_SETTINGS = "spark.sql.streaming.stateStore.rocksdb"
CHANGELOG = f"{_ROCKSDB_SETTINGS}.changelogCheckpointing.enabled"
IS_BOUNDED, MAX_MEGABYTES = f"{_ROCKSDB_SETTINGS}.boundedMemoryUsage", f"{_ROCKSDB_SETTINGS}.maxMemoryUsageMB"
LEAST_OVERHEAD_OF_EXECUTORS = "spark.executor.minMemoryOverhead"
MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"

DEFAULT_HEAP = 1024
"""Spark's default of `spark.driver.memory` and `spark.executor.memory`, in MiB."""
LEAST_OVERHEAD, OVERHEAD_SHARE = 384, 0.1
"""Spark plans this share of the heap beside it for a process, at least so many MiB."""
SHARE = 0.5
"""RocksDB's share of the memory beside the heap. The rest is for Python, for buffers of the network and for Java."""

LEAST_MEGABYTES = 512
"""RocksDB's memory, unless the target says how much there is beside the heap.

RocksDB divides its cache into `CACHE_PARTS`, up to half of which is for buffers, and the filter of a file must fit into
the rest of one part. Otherwise each access to a key reads the filter again, and takes 500 instead of 5 microseconds.
"""
CACHE_PARTS, FILTER_BYTES_OF_KEY = 64, 1.25
"""The parts of `LRUCache` from 32 MB on, and the ten bits of Spark's `BloomFilter`."""
MOST_KEYS_IN_FILE = 3_000_000
"""In a file of 64 MB, RocksDB's largest, if a compressed key and its value have 20 bytes."""

FINITE_MAINTENANCE = "2s"
"""How often state is tidied in queries that end by themselves. With Spark's 60 s, a run that is shorter would never
remove old files, so a query that runs every few minutes would keep the files of all its batches.
"""

_SIZE = re.compile(r"\s*(\d+)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)
_MEBIBYTES = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2}


def memory_settings(spark: Mapping[str, object], *, is_local: bool) -> dict[str, str]:
    """Returns the limit of RocksDB's memory in each process that keeps state, for a target with the settings `spark`:
    the driver of a local master, otherwise each executor, which gets more memory beside its heap. All queries share it.

    The limit is soft: RocksDB writes buffers to disk earlier and keeps fewer blocks in memory, and never fails.
    """
    if is_local:
        planned = _mebibytes(spark.get("spark.driver.memoryOverhead"))
        beside, is_decided = planned or OVERHEAD_SHARE * _heap(spark, "driver"), planned is not None
    else:
        beside, is_decided = overhead_megabytes(spark), _decides(spark)
    limit = SHARE * beside if is_decided else max(LEAST_MEGABYTES, SHARE * beside)
    plans = not is_local and not is_decided
    more = {LEAST_OVERHEAD_OF_EXECUTORS: f"{LEAST_OVERHEAD + LEAST_MEGABYTES}m"} if plans else {}
    return {IS_BOUNDED: "true", MAX_MEGABYTES: str(max(1, round(limit))), **more}


def overhead_megabytes(spark: Mapping[str, object]) -> float:
    """Returns what Spark plans beside the heap of each executor, for a target with the settings `spark`, in MiB."""
    planned = _mebibytes(spark.get("spark.executor.memoryOverhead"))
    if planned is not None:
        return planned
    least = LEAST_OVERHEAD if _decides(spark) else LEAST_OVERHEAD + LEAST_MEGABYTES
    factors = [_number(spark.get(f"spark.{name}.memoryOverheadFactor")) for name in ("executor", "kubernetes")]
    share = next((factor for factor in factors if factor is not None), OVERHEAD_SHARE)
    return max(_mebibytes(spark.get(LEAST_OVERHEAD_OF_EXECUTORS)) or least, share * _heap(spark, "executor"))


def _heap(spark: Mapping[str, object], process: str) -> float:
    return _mebibytes(spark.get(f"spark.{process}.memory")) or DEFAULT_HEAP


def _decides(spark: Mapping[str, object]) -> bool:
    """Returns whether the target says how much memory executors have beside their heap."""
    names = [name.lower() for name in spark if name.startswith(("spark.executor.", "spark.kubernetes."))]
    return any("memoryoverhead" in name for name in names)


def rocksdb_bytes(target: Target) -> int | None:
    """Returns the limit of RocksDB's memory in each process that keeps state; None without one, or if it is unknown."""
    settings = {**memory_settings(target.spark, is_local=target.is_local), **target.spark}
    limit = str(settings[MAX_MEGABYTES])
    is_limited = target.remote is None and settings[IS_BOUNDED] in (True, "true") and limit.isdecimal()
    return int(limit) * 1024**2 if is_limited else None


def needed_bytes(keys: int) -> int:
    """Returns the memory in which RocksDB works well, if a partition of its state has `keys` keys."""
    return round(2 * CACHE_PARTS * FILTER_BYTES_OF_KEY * min(keys, MOST_KEYS_IN_FILE))


def heap_bytes(target: Target) -> int | None:
    """Returns the size of the heap with the state of queries on a local master; None for others, which have several."""
    heap = _mebibytes(target.spark.get("spark.driver.memory")) or DEFAULT_HEAP
    return round(heap * 1024**2) if target.is_local and target.remote is None else None


def _number(value: object) -> float | None:
    with suppress(ValueError):
        return float(str(value))
    return None


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
