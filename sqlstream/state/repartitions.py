"""The batches with which Spark repartitions the state of a query, and its ledger afterwards. Such a batch reads no
data: its entry in the offsets log repeats the batch before it, with another number of partitions.

See OfflineStateRepartitionRunner of Spark 4.3. Spark refuses to start a query whose last batch is an unfinished
repartition (STREAMING_UNFINISHED_REPARTITION_DETECTED).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlstream.compiler.spark_versions import minor_version
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.ledger import HistoryEntry, Ledger, PendingLedger, QueryIdentity
from sqlstream.state.refusals import refresh_text
from sqlstream.state.stored_state import StateStore

PARTITIONS = "spark.sql.shuffle.partitions"
"""Spark's setting for the number of partitions of a query's state. Its first batch fixes it in the checkpoint."""

STATE_FILE = re.compile(r"(?:\A|/)(?P<version>\d+)(?:_[^/]*)?\.(?P<kind>zip|changelog|delta|snapshot)\Z")
"""The name of a file with the state, or its changes, after batch `version` - 1."""

METADATA_FILE = re.compile(r"(?:\A|/)_metadata/v\d+/(?P<batch>\d+)\Z")
"""The name of a file that describes an operator from batch `batch` on."""

ACTION = "repartition"
"""The action of the entry in the history."""


@dataclass(frozen=True)
class RepartitionBatch:
    """A batch that changes the number of partitions from `before` to `after`."""

    number: int
    before: int
    after: int


def batch_settings(text: str) -> Mapping[str, str]:
    """Returns the settings that an entry of the offsets log fixes. `text` is complete. Empty for a continuous query."""
    line = text.split("\n")[1]
    found = json.loads(line) if line else {}
    return dict(found.get("conf", {}))


def batch_partitions(offsets: BatchLog, number: int) -> int | None:
    """Returns the number of partitions of a batch, None if its entry was not read or does not have it."""
    text = offsets.texts.get(number)
    value = None if text is None else batch_settings(text).get(PARTITIONS)
    return None if value is None else int(value)


def last_repartition(offsets: BatchLog) -> RepartitionBatch | None:
    """Returns the last batch of a query if it is a repartition. The entries of `offsets` are complete."""
    number = offsets.last
    before, after = batch_partitions(offsets, number - 1), batch_partitions(offsets, number)
    if before is None or after is None or before == after:
        return None
    return RepartitionBatch(number, before, after)


def target_partitions(settings: Mapping[str, object], old: QueryIdentity) -> int | None:
    """Returns the number of partitions that the `settings` of a target ask for, None if the state of the query `old`
    already has it, there is no state, or they ask for none.
    """
    given, kept = settings.get(PARTITIONS), old.settings.get(PARTITIONS)
    is_other = old.stateful and given is not None and str(given) != kept
    return int(str(given)) if is_other and str(given).isdecimal() else None


def is_written_by(name: str, batch: int) -> bool:
    """Returns whether batch `batch` writes the file `name` below the folder `state` of a checkpoint. The state after
    batch n has version n + 1. A file whose name does not depend on the batch is not needed to load the state.
    """
    state, metadata = STATE_FILE.search(name), METADATA_FILE.search(name)
    return (state is not None and int(state["version"]) == batch + 1) or (
        metadata is not None and int(metadata["batch"]) == batch
    )


def with_partitions(ledger: Ledger, partitions: int) -> Ledger:
    """Returns the ledger of the same query with state in `partitions` partitions."""
    settings: Mapping[str, str] = {**ledger.identity.settings, PARTITIONS: str(partitions)}
    return replace(ledger, identity=replace(ledger.identity, settings=settings))


def migrated(ledger: Ledger, settings: Mapping[str, object]) -> Ledger:
    """Returns the ledger with the number of partitions that the `settings` of a target ask for."""
    wanted = target_partitions(settings, ledger.identity)
    return ledger if wanted is None else with_partitions(ledger, wanted)


def repartitioned(ledger: Ledger, before: int, after: int, *, now: str, versions: tuple[str, str]) -> Ledger:
    """Returns the ledger after a repartition. `now` is UTC, ISO 8601; `versions` are those of sqlstream and Spark.

    Forgets a changed query that has committed no batch, except for the names of its readers.
    """
    change = f"{PARTITIONS} changed from {before} to {after}"
    entry = HistoryEntry(now, ACTION, (change,), False, *versions)
    pending = ledger.pending.ledger.identity.sources if ledger.pending else ()
    names = {use.name for use in pending} - {use.name for use in ledger.identity.sources}
    return replace(
        with_partitions(ledger, after),
        retired=tuple(sorted({*ledger.retired, *names})),
        pending=None,
        history=(*ledger.history, entry),
    )


def repartitioning(ledger: Ledger, new: Ledger, last_commit: int) -> Ledger:
    """Returns the ledger during a repartition after batch `last_commit`: the `new` one takes effect with its commit."""
    return replace(ledger, retired=new.retired, pending=PendingLedger(last_commit, new))


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


def can_repartition(spark_version: str, operators: Iterable[str], *, in_rocksdb: bool) -> bool:
    """Returns whether this Spark can repartition the state of operators with these names."""
    return in_rocksdb and minor_version(spark_version) >= FIRST_SPARK and OPERATORS.issuperset(operators)


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
