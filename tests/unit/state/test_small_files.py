"""The newest entries of a file sink's log say whether its files are too small."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from sqlstream.location import Location
from sqlstream.state.output_files import StoredFile
from sqlstream.state.small_files import SmallFiles, files_of_sink, recent_entries, small_files

KB = 1000


def log(batches: Sequence[Sequence[tuple[str, int]]], seconds: int = 10) -> list[str]:
    """Returns the entries of batches with files in folders, with their sizes."""
    return [
        "\n".join(
            ["v1"]
            + [
                json.dumps(
                    {"path": f"file:/out/{folder}part-{index}", "size": size, "modificationTime": 1000 * seconds * at}
                )
                for index, (folder, size) in enumerate(files)
            ]
        )
        for at, files in enumerate(batches)
    ]


@pytest.mark.parametrize(
    ("files", "seconds", "advice"),
    [
        ([("", 10 * KB)] * 8, 600, "set `files_per_batch: 1` in sink `lake`"),
        (
            [("day=1/", 10 * KB), ("day=2/", 10 * KB)],
            10,
            "larger batches or a longer trigger write fewer and larger files",
        ),
        ([("day=1/", 10 * KB), ("day=2/", 10 * KB)], 600, None),
        ([("", 2000 * KB)] * 8, 10, None),
        ([], 10, None),
    ],
    ids=["many files", "many batches", "few batches", "large files", "no files"],
)
def test_advice(files: Sequence[tuple[str, int]], seconds: int, advice: str | None) -> None:
    """Several files in a folder need another setting of the sink, and frequent batches a longer trigger."""
    found = small_files("lake", log([files] * 6, seconds))
    assert (found.advice if found else None) == advice


def test_figures() -> None:
    """Files count for each folder and batch, and batches without files do not."""
    entries = log([[("a=1/", 10 * KB), ("a=1/", 20 * KB), ("a=2/", 30 * KB)], [], *5 * [[("a=1/", 20 * KB)] * 4]])
    assert small_files("lake", entries) == SmallFiles("lake", 23 / 7, 20 * KB, 12.0)


def test_it_is_too_early_to_say() -> None:
    """Four batches say nothing."""
    assert small_files("lake", log([[("", KB)] * 8] * 4)) is None


class LongLogFiles:
    """A folder of a sink whose log has one compact entry of `size` bytes."""

    def __init__(self, size: int) -> None:
        self.size = size

    def names(self, folder: str) -> tuple[str, ...]:
        """Returns the entries of the log."""
        return ("9.compact", "10")

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """Returns the files of the log."""
        return (StoredFile("9.compact", self.size, 0), StoredFile("10", 300, 0))

    def read_text(self, path: str) -> str | None:
        """Returns an entry without files."""
        assert not path.endswith(".compact"), "a long entry is not read"
        return "v1"


@pytest.mark.parametrize(("size", "is_long"), [(9_999_999, False), (25_000_000, True)])
def test_a_long_log_is_found_without_reading_it(size: int, is_long: bool) -> None:
    """The size of the newest compact entry counts."""
    found = files_of_sink("lake", "parquet", LongLogFiles(size), "/out")
    findings = list(found.findings("orders", Location("sinks.yml", 2, 5)))
    assert (found.log is not None) is is_long
    assert [finding.why for finding in findings] == (
        ["each tenth batch reads and writes its list of files again, which has 25.0 MB"] if is_long else []
    )


def test_compact_entries_are_left_out() -> None:
    """A compact entry repeats those before it; only the newest others count."""
    names = {number: f"{number}.compact" if number % 10 == 9 else str(number) for number in range(25)}
    assert recent_entries(names) == [14, 15, 16, 17, 18, 20, 21, 22, 23, 24]
