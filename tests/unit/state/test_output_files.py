"""Finds the committed files of an output from the sink's log and a listing."""

from __future__ import annotations

import json

import pytest

from sqlstream.location import Location
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.output_files import OutputFiles, StoredFile, log_problem, sort_files

PLACE = Location("models/orders.sql", 1, 1)
UUID = "68fad154-7a17-4dd0-aa6e-258cccda1fcf"


def name(number: int, form: str = "-c000.snappy.parquet") -> str:
    """Returns a file name as Spark creates it."""
    return f"part-{number:05}-{UUID}{form}"


def entry(*names: str, modified: int = 50, **more: str) -> str:
    """Returns an entry of the sink's log."""
    lines = [json.dumps({"path": f"file:///lake/{each}", "modificationTime": modified, **more}) for each in names]
    return "\n".join(["v1", *lines])


def log(*texts: str) -> BatchLog:
    """Returns a log with one entry for each text, numbered from 0."""
    return BatchLog("log", {number: str(number) for number in range(len(texts))}, dict(enumerate(texts)))


def files(*names: str, modified: int = 50) -> list[StoredFile]:
    """Returns a listing."""
    return [StoredFile(each, 1, modified) for each in names]


def sort(listed: list[StoredFile], *texts: str, with_retention: bool = False) -> OutputFiles:
    """Returns the files, sorted by a log."""
    return sort_files(listed, log(*texts), with_retention=with_retention)


@pytest.mark.parametrize(
    "form",
    [
        "-c000.snappy.parquet",
        ".c000.snappy.parquet",
        "-c001.csv.gz",
        "-c000.json",
        "-c000.txt",
        "-c1000.zstd.orc",
        "-c000",
    ],
)
def test_leftovers_are_recognized_by_sparks_file_names(form: str) -> None:
    """Leftovers have Spark's file names, in every format, compressed or not, in partitions or not."""
    found = sort(files(name(1), f"kind=a/{name(2, form)}"), entry(name(1)))

    assert [file.name for file in found.committed] == [name(1)]
    assert [file.name for file in found.leftover] == [f"kind=a/{name(2, form)}"]


@pytest.mark.parametrize(
    "foreign", ["orders.parquet", "part-0.parquet", f"{UUID}.parquet", f"copy of {name(1)}", "README.md"]
)
def test_other_files_are_foreign(foreign: str) -> None:
    """Files that Spark has not written are counted, but not listed."""
    found = sort(files(foreign), entry())

    assert (found.leftover, found.foreign) == ((), 1)


@pytest.mark.parametrize("hidden", ["_spark_metadata/0", f".{name(1)}.crc", f"_temporary/0/{name(1)}", "_SUCCESS"])
def test_hidden_files_are_ignored(hidden: str) -> None:
    """Logs, checksums, and files that are being written are ignored."""
    assert sort(files(hidden), entry()) == OutputFiles()


def test_a_partition_may_begin_with_an_underscore() -> None:
    """Readers accept `_day=1` as a partition."""
    assert len(sort(files(f"_day=1/{name(1)}"), entry()).leftover) == 1


def test_a_folder_may_have_several_uris() -> None:
    """Files are compared by name, because the log can have another host, a link, or an encoded path."""
    found = sort(files(f"kind=a b/{name(1)}"), entry(f"../elsewhere/kind=a%20b/{name(1)}"))

    assert [file.name for file in found.committed] == [f"kind=a b/{name(1)}"]
    assert found.missing == ()


def test_missing_committed_files_are_named() -> None:
    """Missing committed files are named, but not those that the log has deleted."""
    found = sort([], entry(name(1), name(2)), entry(name(2), action="delete"))

    assert found.missing == (name(1),)


def test_files_that_retention_may_have_removed_are_not_leftovers() -> None:
    """With the option retention, files older than all entries of the log are not leftovers."""
    listed = [*files(name(1)), *files(name(2), modified=49), *files(name(3), modified=51)]

    found = sort(listed, entry(name(1)), with_retention=True)

    assert ([file.name for file in found.leftover], found.expired) == ([name(3)], 1)
    assert len(sort(listed, entry(name(1))).leftover) == 2
    assert sort(listed, entry(), with_retention=True).expired == 3


@pytest.mark.parametrize(
    ("entries", "committed", "words"),
    [
        ({0: "v1", 1: "v1"}, 1, None),
        ({0: "v1", 1: "v1"}, 0, None),
        ({}, -1, None),
        ({}, 0, "batch 0 is committed, but log/0 is missing"),
        ({1: "v1"}, 1, "log/0 is missing"),
        ({0: "v1", 2: "v1"}, 2, "log/1 is missing"),
        ({0: "v1"}, 1, "log/1 is missing"),
        ({0: "v1", 1: 'v1\n{"path'}, 0, "log/1 is cut off"),
    ],
)
def test_an_incomplete_log_is_a_problem(entries: dict[int, str], committed: int, words: str | None) -> None:
    """A log must have an entry for each batch up to the last commit."""
    found = log_problem("orders", BatchLog("log", {at: str(at) for at in entries}, entries), committed, PLACE)

    if words is None:
        assert found is None
    else:
        assert found is not None
        assert found.code == "torn-checkpoint"
        assert words in found.why


def test_a_compact_entry_replaces_all_earlier_ones() -> None:
    """Entries before a compact one can be missing."""
    names = {9: "9.compact", 10: "10"}

    assert log_problem("orders", BatchLog("log", names, {9: "v1", 10: "v1"}), 10, PLACE) is None
    assert log_problem("orders", BatchLog("log", names, {9: "v1\n{", 10: "v1"}), 10, PLACE) is not None
