"""The plain path of a file sink shows the current version, and every step of a switch can be the last one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from sqlstream.spark.publication import folders
from sqlstream.spark.publication.folders import FolderPublication
from sqlstream.spark.publication.publication import CannotPublishError, NotWrittenError
from sqlstream.spark.storage import local

NAME = "my orders"


class Sink:
    """Writes the files and the log of a file sink as Spark does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "_spark_metadata"
        self.statuses: list[dict[str, object]] = []

    def write(self, number: int, *names: str, is_compact: bool = False) -> None:
        """Commits a batch with these files. A compact entry contains the files of all batches."""
        added = [self._add(name) for name in names]
        self.statuses += added
        self.log.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(status) for status in (self.statuses if is_compact else added)]
        (self.log / f"{number}{'.compact' if is_compact else ''}").write_text("\n".join(["v1", *lines]))

    def _add(self, name: str) -> dict[str, object]:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{self.folder.name}: {name}")
        uri = f"file://{quote(str(file), safe='/=')}"
        return {"path": uri, "size": file.stat().st_size, "modificationTime": 1, "action": "add"}


@pytest.fixture
def first(tmp_path: Path) -> Sink:
    """The output of version 1 with two batches, one of them in partitions, and a file that no batch has committed."""
    sink = Sink(tmp_path / NAME)
    sink.write(0, "a")
    sink.write(1, "day=1/b", "day=a%20b/c")
    (sink.folder / "part-00000-12345678-1234-1234-1234-123456789012-c000.txt").write_text("left")
    return sink


@pytest.fixture
def second(tmp_path: Path, first: Sink) -> Sink:
    """The output of version 2 with one batch."""
    sink = Sink(tmp_path / f"{first.folder.name}.v2")
    sink.write(0, "a", "day=2/d")
    return sink


@pytest.fixture
def plain(first: Sink) -> FolderPublication:
    """The plain path of the two versions."""
    return FolderPublication(NAME, str(first.folder))


def read(folder: Path) -> set[str]:
    """Returns the content of the files that Spark reads: those in the log, if they are below the folder. Fails if a
    reader that lists the folder would find other files.
    """
    numbers = {int(path.name.split(".")[0]): path for path in (folder / "_spark_metadata").iterdir()}
    compact = max((number for number, path in numbers.items() if path.suffix == ".compact"), default=0)
    assert sorted(number for number in numbers if number >= compact) == list(range(compact, max(numbers) + 1))
    found = set()
    for number in range(compact, max(numbers) + 1):
        for line in numbers[number].read_text().split("\n")[1:]:
            uri = json.loads(line)["path"]
            prefix = f"file://{quote(str(folder), safe='/=')}/"
            assert uri.startswith(prefix)
            found.add(uri.removeprefix(prefix).replace("%25", "%"))
    listed = (path for path in folder.rglob("*") if path.is_file() and "_spark_metadata" not in path.parts)
    assert {path.relative_to(folder).as_posix() for path in listed if not path.name.startswith("part-")} == found
    return {(folder / name).read_text() for name in found}


OLD = {f"{NAME}: a", f"{NAME}: day=1/b", f"{NAME}: day=a%20b/c"}
NEW = {f"{NAME}.v2: a", f"{NAME}.v2: day=2/d"}


def switch(plain: FolderPublication, version: int, *, is_first: bool = False) -> None:
    """Switches as a command does."""
    plain.prepare(version, is_first=is_first)
    plain.switch_to(version)


def test_the_plain_path_shows_each_version_in_turn(plain: FolderPublication, first: Sink, second: Sink) -> None:
    """Readers keep one path, and each version has one, too."""
    switch(plain, 2, is_first=True)
    assert (read(first.folder), read(second.folder)) == (NEW, NEW)
    assert read(Path(f"{plain.path}.v1")) == OLD

    switch(plain, 1)
    assert (read(first.folder), plain.is_shown(1), plain.is_shown(2)) == (OLD, True, False)
    switch(plain, 2)
    assert (read(first.folder), plain.is_shown(2)) == (NEW, True)


def test_uncommitted_files_stay_where_the_version_writes(plain: FolderPublication, first: Sink, second: Sink) -> None:
    """A reader that lists the plain path finds only committed files, also after a rollback."""
    switch(plain, 2, is_first=True)
    switch(plain, 1)
    assert not list(first.folder.glob("part-*"))
    assert len(list(Path(f"{plain.path}.v1").glob("part-*"))) == 1
    assert second.folder.exists()


def test_new_batches_appear_in_both_versions(plain: FolderPublication, first: Sink, second: Sink) -> None:
    """The run of each version adds its batches, also while readers see the other one."""
    switch(plain, 2, is_first=True)
    second.write(1, "e")
    old = Sink(Path(f"{plain.path}.v1"))
    old.write(2, "f")
    for version in (1, 2):
        plain.keep_up(version)
    assert read(first.folder) == {*NEW, f"{NAME}.v2: e"}
    switch(plain, 1)
    assert read(first.folder) == {*OLD, f"{NAME}.v1: f"}


def test_compacted_logs_are_followed(plain: FolderPublication, first: Sink, second: Sink) -> None:
    """Entries that Spark has removed after a compaction go, and files of batches that were missed come with it."""
    switch(plain, 2, is_first=True)
    for number in range(1, 9):
        second.write(number, f"n{number}")
    second.write(9, "n9", is_compact=True)
    for number in range(9):
        (second.log / str(number)).unlink()
    second.write(10, "n10")
    plain.keep_up(2)
    assert read(first.folder) == {*NEW, *(f"{NAME}.v2: n{number}" for number in range(1, 11))}
    assert sorted(path.name for path in (first.folder / "_spark_metadata").iterdir()) == ["10", "9.compact"]


def test_expired_files_are_removed_from_the_plain_path_only(
    plain: FolderPublication, first: Sink, second: Sink
) -> None:
    """The option `retention` removes old files from the log; they remain where the version writes."""
    switch(plain, 2, is_first=True)
    del second.statuses[0]
    second.write(1, "e", is_compact=True)
    plain.keep_up(2)
    assert read(first.folder) == {f"{NAME}.v2: day=2/d", f"{NAME}.v2: e"}
    assert (second.folder / "a").exists()


class KilledError(Exception):
    """Ends a step as `kill -9` does."""


STEPS: list[tuple[object, str]] = [
    (folders, "can_link"),
    (folders, "link_files"),
    (folders, "copy_new_batches"),
    (local.LocalStorage, "write_text"),
    (Path, "rename"),
    (os, "link"),
    (folders, "exchange"),
    (folders, "_remove_uncommitted"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
@pytest.mark.parametrize("target", [1, 2])
def test_an_interrupted_first_switch_shows_a_complete_version_and_can_be_repeated(
    plain: FolderPublication,
    first: Sink,
    second: Sink,
    owner: object,
    step: str,
    target: int,
    *,
    after: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until the switch is recorded, version 1 can go on under the plain path; behind it, the next command continues."""
    is_recorded = _interrupt(plain, owner, step, after=after, monkeypatch=monkeypatch)
    assert read(first.folder) in (OLD, NEW)
    if not is_recorded:
        first.write(2, "g")
        switch(plain, 2, is_first=True)
    else:
        switch(plain, target)
    expected = {1: OLD if is_recorded else {*OLD, f"{NAME}: g"}, 2: NEW}
    for version in (target, 3 - target, target):
        switch(plain, version)
        assert read(first.folder) == expected[version]
    assert read(Path(f"{plain.path}.v1")) == expected[1]
    assert second.folder.exists()


def _interrupt(
    plain: FolderPublication, owner: object, step: str, *, after: bool, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Interrupts a first switch before or after a step. Returns whether versions.json was written."""
    real: Callable[..., object] = getattr(owner, step)

    def killed(*arguments: object, **named: object) -> object:
        if after:
            real(*arguments, **named)
        raise KilledError

    monkeypatch.setattr(owner, step, killed)
    is_recorded = False
    try:
        plain.prepare(2, is_first=True)
        is_recorded = True
        plain.switch_to(2)
    except KilledError:
        monkeypatch.setattr(owner, step, real)
        return is_recorded
    raise AssertionError(f"{step} was not called")


def test_a_file_system_without_an_exchange_uses_two_renames(
    plain: FolderPublication, first: Sink, second: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is at the plain path between them."""
    monkeypatch.setattr(local, "_exchange", lambda *_: 38)
    switch(plain, 2, is_first=True)
    assert read(first.folder) == NEW
    switch(plain, 1)
    assert read(first.folder) == OLD
    assert second.folder.exists()


def test_a_switch_that_was_killed_between_two_renames_is_completed(
    plain: FolderPublication, first: Sink, second: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version can be shown again."""
    plain.prepare(2, is_first=True)
    rename = Path.rename

    def killed(path: Path, target: Path) -> None:
        rename(path, target)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(local, "_exchange", lambda *_: 38)
        patched.setattr(Path, "rename", killed)
        with pytest.raises(KilledError):
            plain.switch_to(2)
    assert not first.folder.exists()
    for version, rows in ((2, NEW), (1, OLD), (2, NEW)):
        switch(plain, version)
        assert read(first.folder) == rows
    assert second.folder.exists()


def test_a_version_that_was_deleted_by_hand_and_starts_again_is_shown_with_its_new_rows(
    plain: FolderPublication, first: Sink, second: Sink
) -> None:
    """What `_published` has of its earlier life is archived."""
    second.write(1, "e")
    switch(plain, 2, is_first=True)
    first.folder.unlink()
    for folder in (second.folder, Path(f"{plain.path}.v1")):
        shutil.rmtree(folder)
    Sink(first.folder).write(0, "first")
    Sink(second.folder).write(0, "again")
    switch(plain, 2, is_first=True)
    assert read(first.folder) == {f"{NAME}.v2: again"}
    assert list((first.folder.parent / "_published" / NAME / "_archive" / "v2").iterdir())
    switch(plain, 1)
    assert read(first.folder) == {f"{NAME}: first"}


def test_a_repaired_batch_is_shown_as_it_was_written_again(plain: FolderPublication, first: Sink, second: Sink) -> None:
    """`state repair` archives the entry of a batch without a commit, and Spark may plan other files for it."""
    second.write(1, "e")
    switch(plain, 2, is_first=True)
    assert read(first.folder) == {*NEW, f"{NAME}.v2: e"}
    (second.log / "1").rename(second.folder.parent / "archived")
    plain.keep_up(2)
    assert read(first.folder) == NEW
    second.write(1, "f")
    plain.keep_up(2)
    assert read(first.folder) == {*NEW, f"{NAME}.v2: f"}


def test_a_lost_folder_is_made_again(plain: FolderPublication, first: Sink, second: Sink) -> None:
    """What readers see contains only links to data."""
    switch(plain, 2, is_first=True)
    shutil.rmtree(first.folder.parent / "_published")
    assert not plain.is_shown(2)
    switch(plain, 2)
    assert read(first.folder) == NEW
    switch(plain, 1)
    assert (read(first.folder), second.folder.exists()) == (OLD, True)


def test_a_version_without_output_is_not_shown(plain: FolderPublication, first: Sink) -> None:
    """Readers keep the version that has rows."""
    with pytest.raises(NotWrittenError):
        plain.prepare(2, is_first=True)
    assert (first.folder / "a").exists()


@pytest.mark.parametrize("kind", ["link", "folder", "foreign"])
def test_a_path_that_cannot_move_stays(plain: FolderPublication, first: Sink, second: Sink, kind: str) -> None:
    """A link of the user's, a folder with outputs of others, and a log that was moved stay as they are."""
    if kind == "link":
        shutil.move(first.folder, first.folder.parent / "elsewhere")
        first.folder.symlink_to("elsewhere")
    elif kind == "folder":
        (first.folder / "other").mkdir()
    else:
        log = second.log / "0"
        log.write_text(log.read_text().replace("file://", "file:///moved"))
    before = sorted(path.name for path in first.folder.rglob("*"))
    with pytest.raises(CannotPublishError):
        plain.prepare(2, is_first=True)
    assert sorted(path.name for path in first.folder.rglob("*")) == before


@pytest.mark.parametrize("other", [f"{NAME}.v1", f"{NAME}/late"])
def test_the_place_of_another_output_is_not_taken(first: Sink, second: Sink, other: str) -> None:
    """A model can write to the path that version 1 would get, or below the plain path, also if it has no rows yet."""
    path = first.folder.parent / other
    plain = FolderPublication(NAME, str(first.folder), {str(first.folder), str(path)})
    Sink(path).write(0, "x")
    for _ in range(2):
        with pytest.raises(CannotPublishError, match="another output is at"):
            plain.prepare(2, is_first=True)
        assert (first.folder / "a").exists()
        shutil.rmtree(path, ignore_errors=True)
    assert (second.folder / "a").exists()


def test_a_folder_under_the_new_name_of_version_1_is_archived(
    plain: FolderPublication, first: Sink, second: Sink
) -> None:
    """Nothing of the user's is lost."""
    (first.folder.parent / f"{NAME}.v1").mkdir()
    (first.folder.parent / f"{NAME}.v1" / "mine").write_text("kept")
    switch(plain, 2, is_first=True)
    assert (first.folder.parent / "_archive" / f"{NAME}.v1" / "1" / "mine").read_text() == "kept"
    assert read(second.folder) == NEW


def test_snapshots_are_links_of_links(tmp_path: Path) -> None:
    """In complete mode each version replaces its own link, and the plain path follows."""
    for name in ("orders", "orders.v2"):
        snapshot = tmp_path / "_snapshots" / name / "0-id"
        snapshot.mkdir(parents=True)
        (snapshot / "rows").write_text(name)
        (tmp_path / name).symlink_to(f"_snapshots/{name}/0-id")
    plain = FolderPublication("orders", str(tmp_path / "orders"))
    switch(plain, 2, is_first=True)
    assert [(tmp_path / name / "rows").read_text() for name in ("orders", "orders.v1")] == ["orders.v2", "orders"]
    switch(plain, 1)
    assert (tmp_path / "orders" / "rows").read_text() == "orders"


def test_folders_without_a_log_get_a_plain_link(tmp_path: Path) -> None:
    """The logs of Delta Lake and the outputs of batch models name no paths."""
    for name in ("orders", "orders.v2"):
        log = tmp_path / name / "_delta_log"
        log.mkdir(parents=True)
        for file in (log / "0.json", log / "_last_checkpoint", tmp_path / name / "rows"):
            file.write_text(name)
    plain = FolderPublication("orders", str(tmp_path / "orders"))
    switch(plain, 2, is_first=True)
    first = tmp_path / "orders.v1"
    assert sorted(path.name for path in first.rglob("*") if path.is_file()) == ["0.json", "_last_checkpoint", "rows"]
    assert [(tmp_path / name / "rows").read_text() for name in ("orders", "orders.v1")] == ["orders.v2", "orders"]
    assert (first / "rows").stat().st_nlink == 1  # a vacuum must free the space
    switch(plain, 1)
    assert (tmp_path / "orders" / "rows").read_text() == "orders"
