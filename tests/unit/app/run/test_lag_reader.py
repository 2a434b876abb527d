"""The lag of the queries of a run, from checkpoints of real runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.run.lag_observer import LagReader, has_unreported_lag
from sqlstream.spark.storage.locks import file_lock
from sqlstream.spark.storage.processes import is_this_process, this_process
from sqlstream.state.sources.lag import (
    FileLag,
    MeasuredLag,
    Pace,
    SourceProgress,
    VersionProgress,
    add_lags,
    source_lags,
)
from sqlstream.state.sources.positions import SourcePosition, VersionPosition
from tests.tools.make_checkpoints import FOLDER, ROOT, with_root, write_project, write_rows

LONGEST_WAIT_SECONDS = 60.0
Make = Callable[[dict[str, str]], LagReader]
Kept = list[tuple[str, MeasuredLag]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose queries have read one file of each source, and not yet another one."""
    with_root(max(FOLDER.iterdir()), tmp_path, ROOT, str(tmp_path))
    write_project(tmp_path)
    write_rows(tmp_path, 1)
    write_rows(tmp_path, 2)
    return tmp_path


@pytest.fixture
def loaded(project: Path) -> Loaded:
    """The compiled project."""
    return load(ProjectRequest(project))


def locked(project: Path) -> AbstractContextManager[object]:
    """Locks the query `pairs` for this process, as a run does."""
    return file_lock(project / "store/queries/pairs/v1.lock")


@pytest.fixture
def reports() -> list[str]:
    """The sentences for the user."""
    return []


@pytest.fixture
def kept() -> Kept:
    """The lags for the journal."""
    return []


@pytest.fixture
def make(loaded: Loaded, reports: list[str], kept: Kept) -> Make:
    """Makes the reader of the lag of the query `pairs`, which reads two sources; takes the units that are needed."""
    (pairs,) = (model for model in loaded.compiled.models.values() if model.name == "pairs")
    assert has_unreported_lag(loaded.compiled, pairs)

    def keep(model: str, lag: MeasuredLag) -> bool:
        kept.append((model, lag))
        return True

    return lambda needed: LagReader(loaded, [pairs], needed, reports.append, keep)


def test_lags_are_read_in_the_background(project: Path, make: Make, reports: list[str]) -> None:
    """During a run a thread reads the lag, by source."""
    lags, until = make({"pairs": "files"}), time.monotonic() + LONGEST_WAIT_SECONDS
    with locked(project), lags.reading():
        while not lags.lags():
            assert time.monotonic() < until
    sizes = {name: (project / f"in/{name}/2.json").stat().st_size for name in ("orders", "refunds")}
    assert lags.lags()["pairs"].sources == {f"shop.{name}": {"files": 1, "bytes": size} for name, size in sizes.items()}
    assert reports == []


def test_the_first_lag_after_each_batch_is_kept(project: Path, loaded: Loaded, make: Make, kept: Kept) -> None:
    """The journal gets one lag for each committed batch, however often the checkpoint is read."""
    (pairs,) = (model for model in loaded.compiled.models.values() if model.name == "pairs")
    lags, checkpoint = make({}), project / "store/queries/pairs/v1/checkpoint"
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal())
    with locked(project):
        lags.read(pairs)
        lags.read(pairs)
        for folder in ("offsets", "commits"):
            shutil.copy(checkpoint / folder / str(last), checkpoint / folder / str(last + 1))
        lags.read(pairs)
    assert [(model, lag.batch) for model, lag in kept] == [("pairs", last), ("pairs", last + 1)]
    assert kept[0][1].sources["shop.orders"]["files"] == 1


def test_a_lag_is_read_again_until_it_is_recorded(project: Path, loaded: Loaded) -> None:
    """While the journal lacks the batch, its lag is not recorded, and the next reading tries again."""
    (pairs,) = (model for model in loaded.compiled.models.values() if model.name == "pairs")
    asked: list[int | None] = []

    def keep(_model: str, lag: MeasuredLag) -> bool:
        asked.append(lag.batch)
        return len(asked) == 2

    lags = LagReader(loaded, [pairs], {}, lambda _text: None, keep)
    with locked(project):
        for _ in range(4):
            lags.read(pairs)
    assert len(asked) == 2


def test_only_queries_of_this_process_have_a_lag(
    loaded: Loaded, make: Make, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that no process runs has none, and neither has one that another process runs, also with the same number
    on another host.
    """
    (pairs,) = (model for model in loaded.compiled.models.values() if model.name == "pairs")
    lags = make({"pairs": "files"})
    lags.read(pairs)
    assert (lags.lags(), reports) == ({}, [])

    assert is_this_process(this_process())
    assert not is_this_process(None)
    own = this_process()
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert not is_this_process(own)


def test_a_rule_that_cannot_be_measured_is_reported_once(project: Path, loaded: Loaded, make: Make) -> None:
    """Without the folder of a source, its rule cannot be measured; one sentence says so. Other units do not matter."""
    (pairs,) = (model for model in loaded.compiled.models.values() if model.name == "pairs")
    (project / "in").rename(project / "moved")
    for unit, count in (("files", 1), ("versions", 0)):
        said: list[str] = []
        lags = LagReader(loaded, [pairs], {"pairs": unit}, said.append, lambda _model, _lag: True)
        with locked(project):
            lags.read(pairs)
            lags.read(pairs)
        assert len(said) == count
        assert all(text.startswith("`lag_over` of pairs cannot be measured: ") for text in said)


def test_several_readers_of_a_table_count_once() -> None:
    """Of two readers of one table, the slower one counts; sources without a known lag are left out."""
    position = SourcePosition("0", None)
    lags = (FileLag(3, 30), FileLag(1, 10), None)
    version = VersionProgress(VersionPosition(1), tuple(SourceProgress(position, lag) for lag in lags))
    assert source_lags(version) == {"source 0": {"files": 3, "bytes": 30}}
    assert add_lags([{"files": 3}, {"files": 1, "versions": 2}]) == {"files": 4, "versions": 2}
    assert add_lags([]) == {}


def test_readings_have_a_pause() -> None:
    """After a reading, the next one waits for at least the interval."""
    pace = Pace(100.0)
    assert pace.begin()
    assert pace.end() >= 100.0
    assert not pace.begin()
