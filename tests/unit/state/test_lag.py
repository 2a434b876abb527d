"""How much of a source a query has not read yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.output_files import StoredFile
from sqlstream.state.sources.lag import FileLag, delta_lag, file_lag, newest_version, record_lag
from sqlstream.state.sources.source_files import (
    FileChoice,
    chosen_files,
    file_choice,
    has_read_changes,
    local_path,
    unread_files,
)

DAY = 86_400_000
"""Milliseconds."""


def stored(*names: str, modified: int = 0) -> list[StoredFile]:
    """Returns files of 10 bytes."""
    return [StoredFile(name, 10, modified) for name in names]


@pytest.mark.parametrize(
    ("names", "choice", "expected"),
    [
        (["a.json", ".a.json.crc", "_SUCCESS", "b._COPYING_", "_metadata"], FileChoice(), ["a.json", "_metadata"]),
        (["a.json", "more/b.json"], FileChoice(), ["a.json"]),
        (["a.json", "more/b.json"], FileChoice(is_recursive=True), ["a.json", "more/b.json"]),
        (["day=1/a.json", "_day=2/b.json", "_new/c.json"], FileChoice(), ["day=1/a.json", "_day=2/b.json"]),
        (["a.json", "a.txt"], FileChoice(pattern="*.json"), ["a.json"]),
    ],
)
def test_files_that_spark_reads(names: list[str], choice: FileChoice, expected: list[str]) -> None:
    """Spark ignores hidden files, subfolders that are no partitions, and names that do not match."""
    assert [file.name for file in chosen_files(stored(*names), choice)] == expected


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({}, FileChoice()),
        ({"maxFileAge": "2d"}, FileChoice(oldest_age_ms=2 * DAY)),
        ({"maxFileAge": "5"}, FileChoice(oldest_age_ms=5)),
        ({"latestFirst": "true"}, FileChoice()),
        ({"latestFirst": "true", "maxFilesPerTrigger": "1"}, FileChoice(oldest_age_ms=None)),
        ({"FILENAMEONLY": "True", "recursiveFileLookup": "true"}, FileChoice(is_recursive=True, by_name=True)),
        ({"pathGlobFilter": "*.json"}, FileChoice(pattern="*.json")),
        ({"pathGlobFilter": "{a,b}"}, None),
        ({"ignoredPathSegmentRegex": "x"}, None),
    ],
)
def test_options_choose_files(options: Mapping[str, str], choice: FileChoice | None) -> None:
    """Options are read as Spark reads them; those that only Spark can apply leave the lag unknown."""
    assert file_choice(options) == choice


def test_a_file_that_was_read_is_no_lag() -> None:
    """Files are compared by their paths, which are encoded in Spark's log, or only by their names."""
    read = {"file:///in/a%20b.json": 5, "file:///elsewhere/c.json": 5}
    files = stored("/in/a b.json", "/in/c.json", modified=5)

    assert [file.name for file in unread_files(files, read, FileChoice())] == ["/in/c.json"]
    assert unread_files(files, read, FileChoice(by_name=True)) == []
    assert file_lag(unread_files(files, read, FileChoice())) == FileLag(1, 10)


def test_a_file_that_is_too_old_is_never_read() -> None:
    """Spark ignores a file that is older than the newest one by more than maxFileAge, but not at the first start."""
    old = stored("/in/old.json", modified=DAY)

    assert unread_files(old, {"file:///in/a.json": 8 * DAY + 1}, FileChoice()) == []
    assert unread_files(old, {"file:///in/a.json": 8 * DAY}, FileChoice()) == old
    assert unread_files(old, {"file:///in/a.json": 90 * DAY}, FileChoice(oldest_age_ms=None)) == old
    assert unread_files(old, {}, FileChoice()) == old


def test_local_paths_of_uris() -> None:
    """The URI of a local file becomes its path; other URIs have none."""
    assert [local_path(uri) for uri in ("file:/a", "file:///a%25b", "s3a://a/b")] == ["/a", "/a%b", None]


def test_versions_that_were_not_read() -> None:
    """The offset of Delta Lake is the version that is read next."""
    names = ["00000000000000000003.json", "00000000000000000004.crc", "00000000000000000005.checkpoint.0.json", "_last"]

    assert newest_version(names) == 3
    assert newest_version([]) is None
    assert [delta_lag({"reservoirVersion": at}, 3).versions for at in (1, 3, 4)] == [3, 1, 0]


def test_changes_that_were_read(tmp_path: Path) -> None:
    """The offset of a stream of changes stays at the last file of changes of a commit; another commit has none."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{4:020d}.json").write_text('{"add": {}}\n{"cdc": {}}\n{"remove": {}}\n{"cdc": {}}\n')
    (log / f"{5:020d}.json").write_text('{"add": {}}\n{"remove": {}}\n')
    offsets = [(4, -1), (4, 0), (4, 1), (5, -1), (5, 0), (6, -1)]

    found = [
        has_read_changes(LocalStorage(), str(tmp_path), {"reservoirVersion": version, "index": index})
        for version, index in offsets
    ]

    assert found == [False, False, True, False, False, False]


def test_records_that_were_not_read() -> None:
    """New partitions count from their first record, and deleted records do not count."""
    lag = record_lag({"t": {"0": 4, "1": 2}}, {"t": {"0": 0, "1": 5, "2": 1}}, {"t": {"0": 10, "1": 6, "2": 3}})

    assert (lag.records, lag.partitions) == (9, {"t": {"0": 6, "1": 1, "2": 2}})
    assert record_lag({"t": {"0": 4}}, {}, {}).records == 0
