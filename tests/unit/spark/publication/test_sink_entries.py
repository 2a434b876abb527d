"""Entries of a file sink's log for another folder."""

from __future__ import annotations

import pytest

from sqlstream.spark.publication.folders import ForeignFilesError, move_entry

ENTRY = 'v1\n{{"path":"{}/day=a%2520b/part-0","size":7,"isDir":false,"modificationTime":1,"action":"{}"}}'


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_only_the_folder_changes(scheme: str) -> None:
    """The encoding of the URI and everything else stays as Spark has written it."""
    entry = ENTRY.format(f"{scheme}/data/my%20orders.v2", "add")
    moved = move_entry(entry, "/data/my orders.v2", "/data/my orders")
    assert moved.text == ENTRY.format(f"{scheme}/data/my%20orders", "add")
    assert moved.files == ("day=a%20b/part-0",)
    assert move_entry(moved.text, "/data/my orders", "/data/my orders.v2").text == entry


def test_deleted_files_are_not_shown() -> None:
    """Spark keeps such entries until it compacts the log."""
    assert move_entry(ENTRY.format("/data/o", "delete"), "/data/o", "/data/o.v1").files == ()


def test_an_entry_without_files_stays() -> None:
    """A batch can be empty."""
    assert move_entry("v1", "/data/o", "/data/o.v1").text == "v1"


@pytest.mark.parametrize("folder", ["file:///moved/o", "s3a://bucket/data/o", "relative"])
def test_files_of_another_folder_are_refused(folder: str) -> None:
    """The storage may have moved since."""
    with pytest.raises(ForeignFilesError):
        move_entry(ENTRY.format(folder, "add"), "/data/o", "/data/o.v1")
