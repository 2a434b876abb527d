"""Which column has the time of a row, which values are in a range, and which records Kafka must still have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from sqlstream.state.backfills import SourceHistory
from sqlstream.state.batch_logs import BatchLog, is_complete_start
from sqlstream.state.ledger import OutputColumn
from sqlstream.state.merged_files import recomputed_entry
from sqlstream.state.output_files import StoredFile
from sqlstream.state.replacements import (
    NotReplaceableError,
    column_range,
    first_read,
    folder_value,
    initial_offsets,
    removed_records,
    time_column,
    with_watermark,
)

ID, TS, DAY = OutputColumn("id", "int"), OutputColumn("ts", "timestamp"), OutputColumn("day", "date")
FIRST, NEXT = datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("columns", "partition_by", "by", "whole", "expected"),
    [
        ((ID, TS, DAY), ("id", "Day"), None, True, DAY),
        ((ID, TS, DAY), ("day",), "TS", False, TS),
        ((ID, TS), (), None, False, TS),
        ((ID, TS, DAY), (), None, False, None),
        ((ID,), (), None, False, None),
        ((ID, TS), ("id",), None, True, None),
        ((ID, TS, DAY), ("day",), "ts", True, None),
        ((ID, TS), (), "id", False, None),
        ((ID, TS), (), "at", False, None),
    ],
)
def test_the_column_with_the_time_must_be_clear(
    columns: tuple[OutputColumn, ...],
    partition_by: tuple[str, ...],
    by: str | None,
    whole: bool,
    expected: OutputColumn | None,
) -> None:
    """It is the named one, the one that partitions the sink, or the only one."""
    if expected is not None:
        assert time_column(columns, partition_by, by, whole_partitions=whole) == expected
        return
    with pytest.raises(NotReplaceableError) as refused:
        time_column(columns, partition_by, by, whole_partitions=whole)
    assert refused.value.fix


def test_ranges_are_literals_of_the_type() -> None:
    """Times are in UTC, and a date has whole days: the fix names them."""
    zone = timezone(timedelta(hours=1))
    times = column_range(OutputColumn("a`b", "timestamp"), datetime(2024, 1, 2, 1, tzinfo=zone), NEXT)
    assert times.condition == (
        "`a``b` >= TIMESTAMP_LTZ '2024-01-02 00:00:00.000000Z' AND `a``b` < TIMESTAMP_LTZ '2024-01-03 00:00:00.000000Z'"
    )
    assert column_range(DAY, FIRST, NEXT).limits == ("DATE '2024-01-02'", "DATE '2024-01-03'")
    plain = column_range(OutputColumn("t", "timestamp_ntz"), FIRST, NEXT)
    assert plain.limits[0] == "TIMESTAMP_NTZ '2024-01-02 00:00:00.000000'"
    with pytest.raises(NotReplaceableError) as refused:
        column_range(DAY, FIRST.replace(hour=5), NEXT.replace(minute=1))
    assert refused.value.fix == "recompute whole days: --from 2024-01-02 --to 2024-01-04"


def test_values_in_the_names_of_folders() -> None:
    """Names are unescaped, in any letter case, and null has no value."""
    assert folder_value("Day=2024-01-02/kind=a/part-0", "day") == "2024-01-02"
    assert folder_value("at=2024-01-02 08%3A00%3A00/part-0", "at") == "2024-01-02 08:00:00"
    assert folder_value("day=__HIVE_DEFAULT_PARTITION__/part-0", "day") is None
    assert folder_value("kind=a/day=x", "day") is None


def test_what_kafka_must_still_have() -> None:
    """The stream and adjacent backfills have read from the first offset of theirs; a record that is still there and older
    than the range shows that none of the range is gone.
    """
    done = [
        SourceHistory("t", "kafka", start={"t": {"0": 20}}, end={"t": {"0": 50}}),
        SourceHistory("t", "kafka", start={"t": {"0": 50}}, end={"t": {"0": 100}}),
    ]
    end = {"t": {"0": 200, "1": 9}}
    assert first_read({"t": {"0": 100}}, {"t": {"1": 3}}, done, end) == {"t": {"0": 20, "1": 3}}
    with pytest.raises(NotReplaceableError, match=r"t-0 before offset 100"):
        first_read({"t": {"0": 100}}, {}, done[:1], end)

    start = {"t": {"0": 20}}
    for earliest, at, expected in ((20, 20, []), (60, 60, ["t-0"]), (60, 61, []), (60, None, []), (200, None, ["t-0"])):
        found = {} if at is None else {"t": {"0": at}}
        assert removed_records(start, {"t": {"0": earliest}}, found, {"t": {"0": 200}}) == expected


def test_entries_of_the_logs() -> None:
    """A first entry keeps its settings; the compact one has all files but the replaced ones."""
    entry = 'v1\n{"batchWatermarkMs":7,"conf":{"a":"b"}}\nshop__orders:{"logOffset":0}'
    assert with_watermark(entry, 0) == entry.replace(":7", ":0")
    assert is_complete_start(initial_offsets({"t": {"0": 3}}))
    line = '{"path":"file:///o/day=1/NAME","size":1,"isDir":false,"modificationTime":5,"blockReplication":1,'
    line += '"blockSize":9,"action":"add"}'
    old, kept = (line.replace("NAME", name) for name in ("old", "kept"))
    log = BatchLog("l", {9: "9.compact", 10: "10"}, {9: f"v1\n{kept}", 10: f"v1\n{old}"})
    made = recomputed_entry(log, ["day=1/old"], [("file:///o/day=1/new", StoredFile("day=1/new", 1, 5))])
    assert made == f"v1\n{kept}\n{line.replace('NAME', 'new')}"
