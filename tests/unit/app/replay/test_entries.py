"""A batch in the logs of a checkpoint: its files, its sources, and the state that it needs."""

from __future__ import annotations

from sqlstream.app.replay.batch_entries import BatchEntries, files_between, planned_at, state_versions
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.ledger import SourceUse

BATCH = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000}'
ORDERS, CLICKS = (SourceUse(name, f"shop.{name}", None, via=name) for name in ("orders", "clicks"))


def entry(*lines: str) -> str:
    """Returns an entry of the offsets log."""
    return "\n".join(["v1", BATCH, *lines])


def log(**entries: str) -> BatchLog:
    """Returns the log of a source by the names of its entries."""
    names = {int(name.split(".")[0]): name for name in entries}
    return BatchLog("sources/0", names, {int(name.split(".")[0]): text for name, text in entries.items()})


def line(path: str, batch: int) -> str:
    """Returns a line of the log of a source of files."""
    return f'{{"path":"file:///{path}","timestamp":1,"batchId":{batch}}}'


def test_a_named_source_keeps_its_name_and_a_position_is_counted_again() -> None:
    """The logs with only one source are those of a query that reads nothing else."""
    named = BatchEntries(
        3, entry('orders:{"logOffset":2}', 'clicks:{"logOffset":5}'), entry('orders:{"logOffset":1}'), "v1\n{}"
    )
    numbered = BatchEntries(0, entry('{"logOffset":2}', '{"t":{"0":1}}'), None, None)

    orders, clicks = named.sources([ORDERS, CLICKS])
    _, second = numbered.sources([ORDERS, CLICKS])

    assert (orders.log_range, clicks.log_range) == ((2, 2), (0, 5))
    assert named.only([clicks]) == BatchEntries(3, entry('clicks:{"logOffset":5}'), entry("clicks:-"), "v1\n{}")
    assert numbered.only([second]) == BatchEntries(0, entry('{"t":{"0":1}}'), None, None)
    assert planned_at(named.planned) == 1_700_000_000_000


def test_files_of_a_batch_are_found_in_compacted_entries() -> None:
    """A compact entry has the files of all entries before it."""
    compact = "\n".join(["v1", line("a", 0), line("b", 1), line("c", 2)])
    entries = {"2.compact": compact, "3": "\n".join(["v1", line("d", 3)])}

    assert files_between(log(**entries), 1, 3) == ["file:///b", "file:///c", "file:///d"]
    assert files_between(log(**entries), 1, 4) is None
    assert files_between(log(**{"0": "v1\n{"}), 0, 0) is None


def test_a_version_of_the_state_needs_all_changes_since_the_last_whole_one() -> None:
    """Every store must be complete; version 0 is empty and needs nothing."""
    whole, change = True, False
    one = [(3, change), (4, whole), (5, change), (6, change)]
    other = [(4, whole), (5, change), (7, change)]

    assert state_versions({"0/0": one}) == {0, 4, 5, 6}
    assert state_versions({"0/0": one, "0/1": other}) == {0, 4, 5}
    assert state_versions({}) is None
