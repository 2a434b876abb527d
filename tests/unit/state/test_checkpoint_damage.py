"""Finds damage in the logs of a checkpoint without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.state.batch_logs import (
    COMMITS_LINES,
    OFFSETS_LINES,
    BatchLog,
    BatchLogs,
    after_compact,
    entry_names,
    is_complete,
    log_offsets,
    logged_files,
)
from sqlstream.state.damage import find_damage

NAMED = 'v2\n{"batchWatermarkMs":0,"conf":{}}\nshop__orders:{"logOffset":LAST}\nshop__other:5'
BY_POSITION = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n-\n{"logOffset":LAST}'


def log(folder: str, *texts: str, names: dict[int, str] | None = None) -> BatchLog:
    """Returns a log with one entry for each text, numbered from 0."""
    return BatchLog(folder, names or {number: str(number) for number in range(len(texts))}, dict(enumerate(texts)))


def offsets(*last: int) -> BatchLog:
    """Returns the offsets of batches that have read up to these entries."""
    return replace(log("offsets", *(NAMED.replace("LAST", str(number)) for number in last)), lines=OFFSETS_LINES)


def files(*names: str) -> str:
    """Returns an entry that lists files."""
    return "\n".join(["v1", *(f'{{"path":"file:///in/{name}","timestamp":1}}' for name in names)])


COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
BEGUN = BatchLogs(
    offsets(0, 1),
    log("commits", COMMIT),
    {"shop__orders": log("sources", files("a"), files("b", "c"))},
    sink=log("sink", files("part-0")),
)
"""A query that was stopped in its second batch, before its sink recorded the batch."""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (NAMED.replace("LAST", "3"), OFFSETS_LINES),
        (BY_POSITION.replace("LAST", "3"), OFFSETS_LINES),
        (
            'v1\n\n{"0":{"value":26,"runTimeMs":5},"1":{"value":27,"runTimeMs":5}}',
            OFFSETS_LINES,
        ),  # of a continuous query
        (COMMIT, COMMITS_LINES),
        ("v1", 0),
        (files("a", "b"), 0),
    ],
)
def test_an_entry_is_complete_or_torn(text: str, lines: int) -> None:
    """Every cut is found, except one at the end of a line, which leaves a shorter list."""
    assert is_complete(text, lines)
    ends = [number for number, letter in enumerate(text) if letter == "\n"]
    cuts = [text[:end] for end in range(len(text)) if end not in ends]
    assert [cut for cut in cuts if is_complete(cut, lines)] == []


def test_offsets_are_read_by_name_or_position() -> None:
    """A source without files has no log."""
    assert log_offsets(NAMED.replace("LAST", "3")) == {"shop__orders": 3}
    assert log_offsets(BY_POSITION.replace("LAST", "3")) == {"1": 3}


def test_a_compact_entry_replaces_earlier_ones() -> None:
    """Only the files with its own number are new."""
    names = entry_names(["8", "9.compact", "10", "11", ".11.crc", "x"])
    assert names == {8: "8", 9: "9.compact", 10: "10", 11: "11"}
    assert after_compact(names) == [10, 11]
    compact = 'v1\n{"path":"file:///a","batchId":8}\n{"path":"file:///b","batchId":9}'
    assert logged_files(compact, 9) == ["file:///b"]


def test_a_batch_needs_its_files() -> None:
    """If a new file of an uncommitted batch is missing, the batch's plan can be archived, in a safe order."""
    (damage,) = find_damage(BEGUN, lambda uris: [uri for uri in uris if uri != "file:///in/b"])
    assert (damage.code, damage.files, damage.batch) == ("source-file-gone", ("file:///in/c",), 1)
    assert damage.archive == ("offsets/1", "sources/1")
    assert find_damage(BEGUN, lambda _: []) == []
    written = replace(BEGUN, sink=log("sink", files("part-0"), files("part-1")))
    assert find_damage(written, list) == []


KAFKA_START = '\0v1\n{"events":{"0":0,"1":0}}'
KAFKA_OFFSETS = 'v2\n{"batchWatermarkMs":0,"conf":{}}\nbus__events:{"events":{"0":5,"1":4}}'


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_the_offsets_that_kafka_started_with_are_complete(planned: bool, committed: bool) -> None:
    """Kafka's source writes a NUL before the version, which is no damage at any time."""
    logs = BatchLogs(
        log("offsets", *([KAFKA_OFFSETS] if planned else [])),
        log("commits", *([COMMIT] if committed and planned else [])),
        {"bus__events": log("sources", KAFKA_START)},
    )

    assert find_damage(logs, list) == []


@pytest.mark.parametrize("end", range(len(KAFKA_START)))
def test_torn_first_offsets_of_kafka_can_be_archived(end: int) -> None:
    """Before the first commit Spark needs them, and can find them again after they are archived."""
    logs = BatchLogs(log("offsets", KAFKA_OFFSETS), log("commits"), {"bus__events": log("sources", KAFKA_START[:end])})

    (damage,) = find_damage(logs, list)

    assert (damage.code, damage.files, damage.archive) == (
        "torn-checkpoint",
        ("sources/0",),
        ("offsets/0", "sources/0"),
    )


def test_torn_first_offsets_of_kafka_do_not_matter_after_a_commit() -> None:
    """Spark no longer reads them: tests/spark/test_kafka.py asks it."""
    logs = BatchLogs(log("offsets", KAFKA_OFFSETS), log("commits", COMMIT), {"bus__events": log("sources", "")})

    assert find_damage(logs, list) == []


@pytest.mark.parametrize("offset", ["5", '{"sourceVersion":1,"reservoirVersion":3}', '"2026-01-01"', "[1]", "{}"])
def test_the_log_of_an_unknown_source_is_not_judged(offset: str) -> None:
    """Only files and Kafka have known forms; of another source's log nothing is said."""
    planned = f'v2\n{{"batchWatermarkMs":0,"conf":{{}}}}\nx__y:{offset}'
    logs = BatchLogs(log("offsets", planned), log("commits"), {"x__y": log("sources", "anything")})

    assert find_damage(logs, list) == []


def test_a_compact_entry_is_never_archived() -> None:
    """A compact entry also contains committed files, so it is never archived."""
    sources = {"shop__orders": log("sources", files("a"), files("b", "c"), names={0: "0", 1: "1.compact"})}
    (damage,) = find_damage(replace(BEGUN, sources=sources), list)
    assert damage.archive == ()


def test_the_sink_entry_is_archived_with_a_torn_plan() -> None:
    """The sink would skip another plan of the batch, so its entry is first."""
    torn = replace(BEGUN.offsets, texts={0: BEGUN.offsets.texts[0], 1: "v2"})
    logs = replace(BEGUN, offsets=torn, sink=log("sink", files("x"), files("y")))
    (damage,) = find_damage(logs, list)
    assert (damage.files, damage.archive) == (("offsets/1",), ("sink/1", "offsets/1"))


@pytest.mark.parametrize(
    ("logs", "file"),
    [
        (replace(BEGUN, offsets=replace(BEGUN.offsets, texts={0: "v2"})), "offsets/0"),
        (replace(BEGUN, sources={"shop__orders": log("sources", "", files("b"))}), "sources/0"),
        (replace(BEGUN, sink=log("sink", "")), "sink/0"),
        (replace(BEGUN, identity=("metadata", "{")), "metadata"),
    ],
)
def test_committed_entries_cannot_be_repaired(logs: BatchLogs, file: str) -> None:
    """Without them, Spark would read the same rows again."""
    damage = find_damage(logs, lambda _: [])[0]
    assert (damage.files, damage.archive) == ((file,), ())
