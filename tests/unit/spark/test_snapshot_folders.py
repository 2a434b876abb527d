"""Snapshots of an output: what readers see after each step, with and without links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.writing.snapshots import Snapshots, _MovedSnapshots, snapshots_of
from sqlstream.state.checkpoints import is_used_folder

Make = Callable[[str], Snapshots]


def moved(output: str) -> Snapshots:
    """Returns the snapshots of a file system without links, on a local disk."""
    return _MovedSnapshots(LocalStorage(), output)


def linked(output: str) -> Snapshots:
    """Returns the snapshots of a local disk."""
    return snapshots_of(LocalStorage(), output)


def write(make: Make, output: Path, name: str) -> None:
    """Writes a snapshot with one file, which contains the snapshot's name."""
    snapshots = make(str(output))
    folder = Path(snapshots.folder_of(name))
    folder.mkdir(parents=True)
    (folder / f"part-{name}").write_text(name)
    snapshots.switch_to(name)
    snapshots.remove_old(name.partition("-")[2])


def kept(make: Make, output: Path) -> set[str | None]:
    """Returns the names of the snapshots that exist."""
    return {path.name for path in (output.parent / "_snapshots/totals").iterdir()} | {make(str(output)).current}


@pytest.mark.parametrize("make", [linked, moved])
def test_readers_see_the_last_snapshot(tmp_path: Path, make: Make) -> None:
    """The output has the files of the last snapshot only."""
    output = tmp_path / "deep" / "totals"
    for name in ("0-a", "1-a", "2-a"):
        write(make, output, name)
        assert [path.name for path in output.glob("part-*")] == [f"part-{name}"]
        assert make(str(output)).current == name
    assert not is_used_folder(LocalStorage(), str(output), has_snapshots=True)


@pytest.mark.parametrize("make", [linked, moved])
def test_old_snapshots_are_removed(tmp_path: Path, make: Make) -> None:
    """A snapshot is kept for a minute after its replacement, and the previous one in any case."""
    output = tmp_path / "totals"
    for number in (8, 9, 10):
        write(make, output, f"{number}-a")
    assert kept(make, output) == {"8-a", "9-a", "10-a"}

    for name in (*tmp_path.glob("_snapshots/totals/*/_snapshot"), output / "_snapshot"):
        os.utime(name, (0, 0))
    write(make, output, "11-a")

    assert kept(make, output) == {"10-a", "11-a"}


@pytest.mark.parametrize("make", [linked, moved])
def test_snapshots_of_another_checkpoint_stay(tmp_path: Path, make: Make) -> None:
    """A query removes only its own snapshots."""
    for name in ("0-a", "0-b", "1-b", "2-b"):
        write(make, tmp_path / "totals", name)

    assert (tmp_path / "_snapshots/totals/0-a/part-0-a").exists()


def test_a_killed_switch_is_repeated(tmp_path: Path) -> None:
    """A link that a killed attempt left does not stop the next attempt; between two moves the output is missing."""
    write(linked, tmp_path / "totals", "0-a")
    (tmp_path / "_snapshots/totals/.1-a.link").symlink_to("nowhere")
    write(linked, tmp_path / "totals", "1-a")
    assert (tmp_path / "totals/part-1-a").exists()

    write(moved, tmp_path / "others", "0-a")
    LocalStorage().move(str(tmp_path / "others"), str(tmp_path / "_snapshots/others/0-a"))
    write(moved, tmp_path / "others", "1-a")
    assert (tmp_path / "others/part-1-a").exists()
