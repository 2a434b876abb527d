"""The newest entries of a file sink's log say whether its files are too small."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from sqlstream.state.small_files import SmallFiles, recent_entries, small_files

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


def test_compact_entries_are_left_out() -> None:
    """A compact entry repeats those before it; only the newest others count."""
    names = {number: f"{number}.compact" if number % 10 == 9 else str(number) for number in range(25)}
    assert recent_entries(names) == [14, 15, 16, 17, 18, 20, 21, 22, 23, 24]
