"""A repartition of a query's state, as the logs of its checkpoint and its ledger show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.location import Location
from sqlstream.state.batch_logs import COMMITS_LINES, OFFSETS_LINES, BatchLog, BatchLogs
from sqlstream.state.damage import damage_finding, find_damage
from sqlstream.state.ledger import Ledger, PendingLedger, SourceUse
from sqlstream.state.repartitions import (
    is_written_by,
    last_repartition,
    migrated,
    older_spark,
    repartitioned,
    repartitioning,
    target_partitions,
    unsupported_operators,
    unsupported_store,
)
from sqlstream.state.stored_state import StateStore
from tests.support.identities import STATEFUL

PLACE = Location("models/totals.sql", 1, 1)
LEDGER = Ledger(STATEFUL, 1, "2026-01-01T00:00:00+00:00", "0.1.0", "4.3.0", "start")
PARTITIONS = "spark.sql.shuffle.partitions"


def log(folder: str, texts: dict[int, str], lines: int = 0) -> BatchLog:
    """Returns a log with these entries."""
    return BatchLog(folder, {number: str(number) for number in texts}, texts, lines)


def offsets(*partitions: int, first: int = 8) -> BatchLog:
    """Returns the offsets of batches with these numbers of partitions."""
    texts = {first + i: f'v1\n{{"conf":{{"{PARTITIONS}":"{n}"}}}}\n5' for i, n in enumerate(partitions)}
    return log("offsets", texts, OFFSETS_LINES)


def logs(planned: BatchLog, committed: int, logged: int | None = None) -> BatchLogs:
    """Returns the logs of a query, with a file sink if `logged` is the last batch in its log."""
    commits = log("commits", dict.fromkeys(range(8, committed + 1), "v1\n{}"), COMMITS_LINES)
    sink = None if logged is None else log("sink", dict.fromkeys(range(8, logged + 1), "v1"))
    return BatchLogs(planned, commits, {}, sink=sink, identity=("metadata", "{}"))


def test_an_uncommitted_repartition_can_be_archived() -> None:
    """The finding names both ways out."""
    (damage,) = find_damage(logs(offsets(4, 4, 7), committed=9), list)
    finding = damage_finding("totals", damage, PLACE)
    assert (finding.code, damage.batch, damage.archive) == ("unfinished-repartition", 10, ("offsets/10",))
    assert "`sqlstream state repartition totals 7`" in finding.fix
    assert "`sqlstream state repair totals` returns to 4 partitions" in finding.fix


def test_a_committed_repartition_must_be_in_the_log_of_the_sink() -> None:
    """It can only be completed. Without a file sink, nothing is missing."""
    (damage,) = find_damage(logs(offsets(4, 4, 7), committed=10, logged=9), list)
    finding = damage_finding("totals", damage, PLACE)
    assert (finding.code, damage.archive) == ("unfinished-repartition", ())
    assert "repair" not in finding.fix
    assert "sink/10" in finding.why
    assert find_damage(logs(offsets(4, 4, 7), committed=10, logged=10), list) == []
    assert find_damage(logs(offsets(4, 4, 7), committed=10), list) == []
    assert find_damage(logs(offsets(4, 7, 7), committed=9, logged=9), list) == []


@pytest.mark.parametrize("texts", [{0: 'v1\n{"conf":{}}\n5'}, {0: "v1\n\n{}", 1: "v1\n\n{}"}, {}])
def test_other_logs_have_no_repartition(texts: dict[int, str]) -> None:
    """A first batch, a continuous query, and no batch at all."""
    assert last_repartition(log("offsets", texts, OFFSETS_LINES)) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0/3/6.zip", True),
        ("0/3/6.changelog", True),
        ("0/3/left-keyToNumValues/6.delta", True),
        ("0/3/6_0f1c-2d.zip", True),
        ("0/_metadata/v2/5", True),
        ("0/3/5.zip", False),
        ("0/3/16.zip", False),
        ("0/3/SSTs/6-abc.sst", False),
        ("0/_metadata/metadata", False),
        ("0/_metadata/v2/6", False),
    ],
)
def test_the_files_of_a_batch(name: str, expected: bool) -> None:
    """Batch 5 writes version 6 of the state."""
    assert is_written_by(name, 5) == expected


@pytest.mark.parametrize(
    ("given", "stateful", "wanted"),
    [("7", True, 7), (7, True, 7), ("2", True, None), (None, True, None), ("7", False, None), ("many", True, None)],
)
def test_what_a_target_asks_for(given: object, stateful: bool, wanted: int | None) -> None:
    """Another number for a query with state."""
    settings = {} if given is None else {PARTITIONS: given}
    assert target_partitions(settings, replace(STATEFUL, stateful=stateful)) == wanted
    assert migrated(LEDGER, settings).identity.settings[PARTITIONS] == ("2" if given in (None, "2", "many") else "7")


def test_the_ledger_changes_with_the_commit() -> None:
    """Until then the old number counts. A changed query that had not committed a batch leaves only its readers."""
    reader = SourceUse("shop__other", "shop.other", None)
    begun = replace(LEDGER, pending=PendingLedger(4, replace(LEDGER, identity=replace(STATEFUL, sources=(reader,)))))

    new = repartitioned(begun, 2, 7, now="2026-01-02T00:00:00+00:00", versions=("0.1.0", "4.3.0"))
    during = repartitioning(begun, new, 4)

    assert during.settled(4).identity == STATEFUL
    assert during.settled(5) == new
    assert new.identity.settings[PARTITIONS] == "7"
    assert new.retired == ("shop__other",)
    assert [(entry.action, entry.changes) for entry in new.history] == [
        ("repartition", (f"{PARTITIONS} changed from 2 to 7",))
    ]


def test_what_spark_cannot_repartition() -> None:
    """An older Spark, another state store, an operator without partition key."""
    provider = "spark.sql.streaming.stateStore.providerClass"
    stores = [StateStore(0, "stateStoreSave", "default"), StateStore(1, "globalLimit", "default")]
    found = [
        older_spark("totals", "4.1.4", PLACE),
        unsupported_store("totals", {provider: "a.b.HDFSBackedStateStoreProvider"}, PLACE),
        unsupported_operators("totals", stores, PLACE),
    ]
    assert [finding and finding.code for finding in found] == ["cannot-repartition"] * 3
    assert older_spark("totals", "4.2.0", PLACE) is None
    assert unsupported_store("totals", {provider: "a.b.RocksDBStateStoreProvider"}, PLACE) is None
    assert unsupported_operators("totals", stores[:1], PLACE) is None
