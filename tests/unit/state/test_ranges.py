"""The history of a source: what is left of it, and how many batches read it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.state.backfills import (
    Backfill,
    BackfillLog,
    HistoryFile,
    Offsets,
    SourceHistory,
    TimeRange,
    UnreadableBackfillsError,
    file_uri,
    in_batches,
    read_backfills,
    unread_history,
    unread_records,
)
from sqlstream.state.output_files import StoredFile
from sqlstream.state.sources.source_files import FileChoice, local_path

DAY = 86_400_000


def offsets(*numbers: int) -> Offsets:
    """Returns the offsets of the partitions of one topic."""
    return {"t": {str(partition): number for partition, number in enumerate(numbers)}}


def records(start: Offsets, end: Offsets) -> SourceHistory:
    """Returns a backfill of Kafka."""
    return SourceHistory("bus.events", "kafka", start=start, end=end)


def read_by(rounds: list[tuple[Offsets, Offsets]]) -> list[tuple[str, int]]:
    """Returns the partition and the offset of each record that batches read."""
    return [
        (partition, offset)
        for start, end in rounds
        for partition, first in start["t"].items()
        for offset in range(first, end["t"][partition])
    ]


def test_files_that_the_stream_reads_or_will_read_are_no_history() -> None:
    """History is older than `maxFileAge` allows, unread, in the range, and not backfilled; the oldest comes first."""
    read = {"file:///in/new%20file.json": 20 * DAY}
    found = [
        StoredFile("/in/new file.json", 1, 20 * DAY),
        StoredFile("/in/coming.json", 1, 14 * DAY),
        StoredFile("/in/b.json", 1, 12 * DAY),
        StoredFile("/in/a.json", 1, 10 * DAY),
        StoredFile("/in/done.json", 1, 11 * DAY),
        StoredFile("/in/too old.json", 1, 5 * DAY),
    ]
    done = [SourceHistory("shop.orders", "files", (HistoryFile("file:///in/done.json", 11 * DAY),))]

    left = unread_history(found, read, FileChoice(), TimeRange(10 * DAY, 13 * DAY), done)

    assert left == (HistoryFile("file:///in/a.json", 10 * DAY), HistoryFile("file:///in/b.json", 12 * DAY))


def test_without_an_age_limit_files_have_no_history() -> None:
    """A stream that reads files of any age will read them all."""
    found = [StoredFile("/in/a.json", 1, 1)]
    assert unread_history(found, {}, FileChoice(oldest_age_ms=None), TimeRange(), []) == ()


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\n\r"), min_size=1))
def test_the_uri_of_a_file_leads_back_to_its_path(name: str) -> None:
    """Spark decodes the URI to the same path."""
    assert local_path(file_uri(f"/in/{name}")) == f"/in/{name}"


def test_a_range_around_an_earlier_one_needs_two_batches() -> None:
    """Each batch reads one span of a partition; other partitions read nothing then."""
    done = [records(offsets(4, 9), offsets(6, 9))]
    assert unread_records(offsets(10, 9), offsets(2, 8), offsets(8, 20), done) == [
        (offsets(2, 8), offsets(4, 9)),
        (offsets(6, 9), offsets(8, 9)),
    ]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6))
def test_any_ranges_together_read_each_record_before_the_stream_once(spans: list[tuple[int, int]]) -> None:
    """However ranges overlap, no record is read twice, and none that the stream has read; a last one reads the rest."""
    first = offsets(20, 15)
    done: list[SourceHistory] = []
    read: list[tuple[str, int]] = []
    for start, end in [*spans, (0, 30)]:
        rounds = unread_records(first, offsets(start, start), offsets(end, end), done)
        read += read_by(rounds)
        done += [records(*each) for each in rounds]

    assert sorted(read) == sorted([("0", number) for number in range(20)] + [("1", number) for number in range(15)])


def test_sources_with_different_numbers_of_spans_share_batches() -> None:
    """A source without a further span is missing in the later batches."""
    one, two = records(offsets(0), offsets(1)), records(offsets(2), offsets(3))
    assert list(in_batches({"a": [one, two], "b": [one]})) == [{"a": one, "b": one}, {"a": two}]


def test_a_record_reads_back_and_knows_what_is_unfinished() -> None:
    """Only the last backfill can be unfinished: its batch is not committed."""
    entry = Backfill(7, "2024-01-01T00:00:00+00:00", None, None, {"0": records(offsets(0), offsets(1))})
    log = read_backfills(BackfillLog((entry,)).to_json())

    assert log == BackfillLog((entry,))
    assert (log.unfinished(6), log.unfinished(7)) == (entry, None)
    assert list(log.histories("0")) == [entry.sources["0"]]
    assert read_backfills(None) == BackfillLog()


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 3, "entries": []}', '{"version": 1, "entries": [1]}'])
def test_a_damaged_record_is_refused(text: str) -> None:
    """Text that is no record, and one of a later format."""
    with pytest.raises(UnreadableBackfillsError):
        read_backfills(text)
