"""The journal of a submitted run reaches its storage in whole files, and other machines read each line once."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.loading.load import Invocation
from sqlstream.app.observe import stored_journal
from sqlstream.app.observe.stored_journal import (
    LOST_SECONDS,
    StoredJournal,
    copied_journals,
    copy_stored_logs,
)
from sqlstream.app.status.status import RunStatus, known_runs, run_status
from sqlstream.history.reads import PastRun
from sqlstream.spark.storage.lease import LocalLeaseFiles
from sqlstream.spark.storage.local import LocalStorage


class Store(LocalLeaseFiles):
    """A folder that can fail, and says how often it was written."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.written = threading.Semaphore(0)
        self.fails, self.tears, self.failures, self.longest = False, False, 0, 0

    def create(self, name: str, text: str = "") -> bool:
        """Creates a file as a folder does, or fails. `failures` is how often it still fails, and with `tears`, a failure
        leaves a part of the file.
        """
        self.longest = max(self.longest, len(text))
        if self.fails or self.failures:
            self.failures -= bool(self.failures)
            if self.tears:
                super().create(name, text[:3])
            self.written.release()
            raise OSError("no space left")
        done = super().create(name, text)
        self.written.release()
        return done


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes often."""
    monkeypatch.setattr(stored_journal, "WRITE_SECONDS", 0.01)


def lines(root: Path) -> list[str]:
    """Returns the lines of all copies."""
    return [line for path in copied_journals(root) for line in path.read_text().splitlines()]


def copy(folder: Path, root: Path) -> list[str]:
    """Copies the journals, and returns all lines."""
    copy_stored_logs(LocalStorage(), str(folder), root, "prod")
    return lines(root)


def test_lines_reach_readers_once(tmp_path: Path) -> None:
    """Lines from before the start, during the run and at its end are in one file, which replaces earlier ones."""
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), print)
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    assert store.written.acquire(timeout=60)
    assert copy(tmp_path / "logs", tmp_path) == ['{"n": 1}']
    journal.add('{"größe": 2}')
    assert store.written.acquire(timeout=60)
    journal.add('{"n": 3}')
    journal.close(60)

    assert copy(tmp_path / "logs", tmp_path) == ['{"n": 1}', '{"größe": 2}', '{"n": 3}']
    assert len(store.names()) == len(copied_journals(tmp_path)) == 1


def test_a_long_run_has_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full part does not change any more. When the next one begins, the oldest parts are removed, but not the first:
    it says which run this is.
    """
    monkeypatch.setattr(stored_journal, "PART_BYTES", 10)
    monkeypatch.setattr(stored_journal, "MAX_PARTS", 2)
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), print)
    for number in range(5):
        journal.add(f'{{"number": {number}}}')
        journal.start(lambda: store) if number == 0 else None
        assert store.written.acquire(timeout=60)
    journal.close(60)

    assert [json.loads(line)["number"] for line in copy(tmp_path / "logs", tmp_path)] == [0, 3, 4]


def test_short_runs_do_not_remove_a_live_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts that changed last are kept, also if their run began before others; of a run that is alive, always the
    first and the newest part. One that has not written for long has no such right.
    """
    monkeypatch.setattr(stored_journal, "MAX_PARTS", 2)
    store, now = Store(tmp_path), time.time()
    ages = {"2024": (("dead", 1, 900), ("dead", 2, 800)), "2025": (("live", 1, 700), ("live", 2, 600), ("live", 3, 60))}
    ages |= {"2026": (("short1", 1, 50), ("short2", 1, 40))}
    for year, parts in ages.items():
        for run, part, age in parts:
            path = tmp_path / f"{year}_{run}_{part:05}_0000001.jsonl"
            path.write_text("{}\n")
            os.utime(path, (now - age, now - age))

    journal = StoredJournal(Invocation(), print)
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    journal.close(60)

    kept = sorted(name.split("_")[1:3] for name in store.names() if name.startswith("202") and "T" not in name)
    assert kept == [["live", "00001"], ["live", "00003"], ["short1", "00001"], ["short2", "00001"]]


def test_a_full_part_still_says_that_the_run_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle run whose part is full writes it again: the next part begins with a line."""
    monkeypatch.setattr(stored_journal, "ALIVE_SECONDS", 0.0)
    monkeypatch.setattr(stored_journal, "PART_BYTES", 5)
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), print)
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    for _ in range(3):
        assert store.written.acquire(timeout=60)
    journal.close(60)

    (name,) = store.names()
    assert name.split("_")[2] == "00001"
    assert int(name.split("_")[3].removesuffix(".jsonl")) >= 3


def test_a_store_that_fails_loses_no_line(tmp_path: Path) -> None:
    """While the storage cannot be written, the run goes on with one notice; then it gets all lines."""
    problems: list[str] = []
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), problems.append)
    store.fails = True
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    for _ in range(3):
        assert store.written.acquire(timeout=60)
    journal.add('{"n": 2}')
    store.fails = False
    assert store.written.acquire(timeout=60)
    journal.close(60)

    assert copy(tmp_path / "logs", tmp_path) == ['{"n": 1}', '{"n": 2}']
    assert len(problems) == 1
    assert "no space left" in problems[0]


def test_a_store_that_fails_for_long_costs_neither_memory_nor_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the storage fails, each attempt sends at most one part, and none leaves a file. Then each part is one file."""
    monkeypatch.setattr(stored_journal, "PART_BYTES", 20)
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), lambda _: None)
    store.fails = store.tears = True
    for number in range(6):
        journal.add(f'{{"n": {number}}}')
    journal.start(lambda: store)
    for _ in range(5):
        assert store.written.acquire(timeout=60)
    assert store.longest <= 20 + len('{"n": 1}\n')
    store.fails = False
    journal.close(60)

    assert copy(tmp_path / "logs", tmp_path) == [f'{{"n": {number}}}' for number in range(6)]
    assert [name.split("_")[2:] for name in sorted(store.names())] == [
        ["00001", "0000001.jsonl"],
        ["00002", "0000001.jsonl"],
    ]


def test_the_last_lines_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage that fails once at the end of the run still gets its last lines."""
    monkeypatch.setattr(stored_journal, "RETRY_SECONDS", 0.01)
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), lambda _: None)
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    assert store.written.acquire(timeout=60)
    store.failures = 2
    journal.add('{"n": 2}')
    journal.close(60)

    assert copy(tmp_path / "logs", tmp_path) == ['{"n": 1}', '{"n": 2}']


def test_a_storage_that_fails_to_the_end_does_not_stop_the_run(tmp_path: Path) -> None:
    """The end waits for it as long as `close` says. One that cannot be opened is reported, and nothing waits."""
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), lambda _: None)
    store.fails = True
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    journal.close(0.05)

    def unopened() -> LocalLeaseFiles:
        raise OSError("unknown host")

    problems: list[str] = []
    other = StoredJournal(Invocation(), problems.append)
    other.start(unopened)
    other.close(60)
    assert ["unknown host" in problem for problem in problems] == [True]


def test_a_torn_file_hides_no_line(tmp_path: Path) -> None:
    """A driver that is killed while it writes leaves a part of a file: readers take the one before it."""
    folder = tmp_path / "logs"
    folder.mkdir()
    run = "20260101T000000Z_a-b_00001"
    (folder / f"{run}_0000001.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    (folder / f"{run}_0000002.jsonl").write_text('{"n": 1}\n{"')
    (folder / f"{run}_0000003.jsonl").write_text("")

    assert copy(folder, tmp_path) == ['{"n": 1}', '{"n": 2}']


def test_a_run_is_alive_as_long_as_it_writes(tmp_path: Path) -> None:
    """A submitted run without a report is running while its files are new, killed later, and unknown without them."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "20260101T000000Z_a-b_00001_0000001.jsonl").write_text("{}\n")
    signs = copy_stored_logs(LocalStorage(), str(folder), tmp_path, "prod")
    run = PastRun("a-b", "prod", 1, "another machine")

    assert run_status(run, signs) is RunStatus.RUNNING
    assert run_status(run, {"a-b": time.time() - 2 * LOST_SECONDS}) is RunStatus.KILLED
    assert run_status(run) is RunStatus.ELSEWHERE
    assert run_status(replace(run, succeeded=True), signs) is RunStatus.ENDED


def test_a_run_without_news_says_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose queries wait for data writes its last part again, so that it does not look killed."""
    monkeypatch.setattr(stored_journal, "ALIVE_SECONDS", 0.0)
    store, journal = Store(tmp_path / "logs"), StoredJournal(Invocation(), print)
    journal.add('{"n": 1}')
    journal.start(lambda: store)
    for _ in range(3):
        assert store.written.acquire(timeout=60)
    journal.close(60)

    assert copy(tmp_path / "logs", tmp_path) == ['{"n": 1}']
    assert len(store.names()) == 1


def test_the_history_has_runs_of_other_machines(tmp_path: Path) -> None:
    """`known_runs` has the runs in the copies, beside those of this folder."""
    line = {"time": "2026-01-01T00:00:00Z", "invocation_id": "a-b", "target": "prod", "pid": 1, "process_start": "x y"}
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "20260101T000000Z_a-b_00001_0000001.jsonl").write_text(json.dumps({**line, "event": "run_began"}) + "\n")

    (found,) = known_runs(tmp_path, copy_stored_logs(LocalStorage(), str(folder), tmp_path, "prod"))

    assert (found.run.target, found.life) == ("prod", RunStatus.RUNNING)
