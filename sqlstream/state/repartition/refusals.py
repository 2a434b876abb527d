"""Why the state of a query cannot be repartitioned, or a query cannot resume after a repartition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlstream.compiler.spark_versions import minor_version
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted
from sqlstream.state.refusals import refresh_text
from sqlstream.state.repartition.batches import PARTITIONS
from sqlstream.state.stored_state import StateStore

CODE, UNFINISHED = "cannot-repartition", "unfinished-repartition"

FIRST_SPARK = (4, 2)
"""The first Spark that can repartition state."""

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "RocksDBStateStoreProvider"
"""The class of the only state store that Spark can repartition, without its package."""

OPERATORS = frozenset({
    "stateStoreSave", "sessionWindowStateStoreSaveExec", "symmetricHashJoin", "dedupe", "dedupeWithinWatermark",
    "flatMapGroupsWithState", "applyInPandasWithState", "transformWithStateExec", "transformWithStateInPandasExec",
    "transformWithStateInPySparkExec",
})  # fmt: skip
"""The operators whose state Spark 4.3 can repartition (StatePartitionKeyExtractorFactory)."""


def older_spark(model: str, version: str, location: Location) -> Finding | None:
    """Returns the finding if Spark `version` cannot repartition state."""
    if minor_version(version) >= FIRST_SPARK:
        return None
    return _refused(
        model,
        f"this is Spark {version}, and Spark can repartition state only since 4.2",
        f"install pyspark 4.3; or set {PARTITIONS} in the target, then {refresh_text(model)}",
        location,
    )


def has_rocksdb(settings: Mapping[str, str]) -> bool:
    """Returns whether a checkpoint with these settings keeps its state in RocksDB."""
    return settings.get(PROVIDER, "").rpartition(".")[2] == ROCKSDB


def unsupported_store(model: str, settings: Mapping[str, str], location: Location) -> Finding | None:
    """Returns the finding if Spark cannot repartition the state store of a checkpoint with these settings."""
    if has_rocksdb(settings):
        return None
    name = settings.get(PROVIDER, "").rpartition(".")[2]
    return _refused(
        model,
        f"its state store is {name or 'unknown'}, and Spark can repartition only RocksDB",
        f"set {PARTITIONS} and `{PROVIDER}: org.apache.spark.sql.execution.streaming.state.{ROCKSDB}` in the target, "
        f"then {refresh_text(model)}",
        location,
    )


def unsupported_operators(model: str, stores: Iterable[StateStore], location: Location) -> Finding | None:
    """Returns the finding if Spark cannot repartition one of the operators that keep state."""
    found = sorted({store.kind for store in stores} - OPERATORS)
    if not found:
        return None
    return _refused(
        model,
        f"it has the operator {', '.join(found)}, whose state Spark cannot repartition",
        f"set {PARTITIONS} in the target, then {refresh_text(model)}",
        location,
    )


def open_batch(model: str, batch: int, location: Location) -> Finding:
    """Returns the finding that a batch has started and is not committed."""
    return _refused(
        model,
        f"batch {batch} started but is not committed, and a repartition begins a batch after the last one",
        f"finish the batch with `sqlstream run --available-now -s {model}`, then repeat this command",
        location,
    )


def no_ledger(model: str, path: str, problem: str, location: Location) -> Finding:
    """Returns the finding that the number of partitions cannot be recorded."""
    return _refused(
        model,
        f"its ledger {path} {problem}, so the new number could not be recorded",
        "restore the ledger from a backup",
        location,
    )


def no_internals(model: str, setting: str, location: Location) -> Finding:
    """Returns the finding that the log of a file sink cannot be extended."""
    return _refused(
        model,
        "it writes files, and their log needs an entry for the repartition, which only Spark's own class can add; "
        f"this Spark does not have it, or {setting} is false",
        f"remove {setting} from the target; or {refresh_text(model)}",
        location,
    )


def failed_text(model: str, version: int) -> str:
    """Returns the message for a repartition that failed in Spark."""
    return f"Spark could not repartition the state of {quoted(model)}; version {version} is as before"


def unfinished(model: str, batch: int, before: int, after: int, lacking: str | None, location: Location) -> Finding:
    """Returns the finding that a repartition was interrupted. If Spark has committed it, `lacking` is the file that the
    log of the output still lacks.
    """
    again = f"`sqlstream state repartition {model} {after}` completes it"
    back = f"`sqlstream state repair {model}` returns to {before} partitions"
    return Finding(
        UNFINISHED,
        f"a repartition of the state of {quoted(model)} was interrupted",
        f"batch {batch}, which changes {before} to {after} partitions, "
        + ("is not committed, and Spark cannot resume there" if lacking is None else f"needs {lacking} in the output"),
        again if lacking else f"{again}; or {back}",
        location,
    )


def _refused(model: str, why: str, fix: str, location: Location) -> Finding:
    return Finding(CODE, f"the state of {quoted(model)} cannot be repartitioned", why, fix, location)
