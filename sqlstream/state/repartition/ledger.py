"""The ledger of a query whose state has another number of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlstream.state.ledger import HistoryEntry, Ledger, PendingLedger
from sqlstream.state.repartition.batches import PARTITIONS, target_partitions

ACTION = "repartition"
"""The action of the entry in the history."""


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
