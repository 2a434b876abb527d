"""logs/events.jsonl has complete lines from any number of processes and a bounded size, and never ends a run."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
from pathlib import Path

from sqlstream.app.observe.record import GENERATIONS, Journal, journal_files


def lines(folder: Path) -> list[str]:
    """Returns all kept lines, starting with the oldest file."""
    return [line for file in journal_files(folder) if file.exists() for line in file.read_text().splitlines()]


def test_lines_are_appended(tmp_path: Path) -> None:
    """A second journal appends to the same file; the folder is created."""
    Journal(tmp_path / "logs").append('{"a": 1}')
    Journal(tmp_path / "logs").append('{"größe": "\\udcff"}')

    assert [json.loads(line) for line in lines(tmp_path / "logs")] == [{"a": 1}, {"größe": "\udcff"}]


def test_old_lines_are_removed(tmp_path: Path) -> None:
    """Old lines are removed: only a few files stay, each within its size limit."""
    journal = Journal(tmp_path, max_bytes=100)
    for number in range(200):
        journal.append(f'{{"number": {number:03}}}')

    kept = lines(tmp_path)
    assert kept[-1] == '{"number": 199}'
    assert [int(line[-4:-1]) for line in kept] == list(range(200 - len(kept), 200))
    assert all(file.stat().st_size <= 100 for file in journal_files(tmp_path))
    assert len(journal_files(tmp_path)) == GENERATIONS + 1


def append_many(folder: Path, name: str) -> None:
    """Appends lines, as one of several processes."""
    journal = Journal(folder, max_bytes=100_000)
    for number in range(1_000):
        journal.append(json.dumps({"name": name, "number": number, "rest": "x" * (number % 90)}))
    os._exit(0 if journal.problem is None else 1)


def test_processes_write_in_parallel(tmp_path: Path) -> None:
    """Several processes write at once without torn or lost lines, also while files are rotated."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=append_many, args=(tmp_path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    found = [json.loads(line) for line in lines(tmp_path)]
    for name in "abc":
        assert sorted(each["number"] for each in found if each["name"] == name) == list(range(1_000))


def test_a_missing_log_folder_is_no_error(tmp_path: Path) -> None:
    """A folder that cannot be created is recorded as a problem, and the next line tries again."""
    (tmp_path / "logs").write_text("in the way")
    journal = Journal(tmp_path / "logs")

    journal.append("{}")
    assert journal.problem is not None

    (tmp_path / "logs").unlink()
    journal.append("{}")
    assert lines(tmp_path / "logs") == ["{}"]


def test_lines_after_a_full_disk_are_complete(tmp_path: Path) -> None:
    """After a full disk, later lines are complete and the torn line stands alone."""
    limits, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Journal(tmp_path)
    journal.append('{"a": 1}')
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12, limits[1]))
        journal.append('{"b": 2}')
        assert journal.problem is not None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    journal.append('{"c": 3}')

    assert lines(tmp_path) == ['{"a": 1}', '{"b', '{"c": 3}']
