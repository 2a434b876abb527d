"""The history gets each line of the journal once, also if its files change."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.make_history import iso, name_of
from sqlstream.app.observe.record import Journal
from sqlstream.history.store import HISTORY, History
from tests.support.journal import NOW, batch_text, event_text, history_of, write


def rows(history: History, statement: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query."""
    with history.reading() as connection:
        return connection.execute(statement).fetchall()


def batch_ids(history: History) -> list[int]:
    """Returns the batches in the history, in their order."""
    return [row[0] for row in rows(history, "SELECT batch_id FROM batches ORDER BY query, at_ms")]


def test_each_line_counts_once(tmp_path: Path) -> None:
    """Another call, and another process later, read only what is new."""
    write(tmp_path, event_text("run_loaded", target="prod"), *map(batch_text, range(3)))
    with history_of(tmp_path) as history:
        assert history.ingest().batches == 3
        assert history.ingest().lines == 0
        write(tmp_path, batch_text(3))
        assert history.ingest().batches == 1
    with history_of(tmp_path) as history:
        assert history.ingest().lines == 0
        assert batch_ids(history) == [0, 1, 2, 3]
        assert rows(history, "SELECT target, model FROM queries") == [("prod", name_of(1))]


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    """A last line without a newline is read when it is complete; one that never was is left out."""
    text = batch_text(1)
    write(tmp_path, batch_text(0))
    with history_of(tmp_path) as history, (tmp_path / "events.jsonl").open("a") as file:
        file.write(text[:100])
        file.flush()
        assert history.ingest().batches == 1
        file.write(text[100:] + "\n" + batch_text(2)[:50] + "\n" + batch_text(3) + "\n")
        file.flush()
        assert history.ingest().batches == 2
        assert batch_ids(history) == [0, 1, 3]


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"event": "batch", "time": 3, "invocation_id": "r1"}', "\x00"])
def test_foreign_lines_are_left_out(tmp_path: Path, text: str) -> None:
    """A line in another form is no reason to stop."""
    strange = event_text("batch", model="a", batch_id="x", started_at="yesterday", query={"model": 3})
    write(tmp_path, text, strange, batch_text(0))
    with history_of(tmp_path) as history:
        assert history.ingest().batches == 1


def test_rotated_files_are_read_to_their_end(tmp_path: Path) -> None:
    """A file that was renamed after a part of it was read continues there, and no line counts twice."""
    journal = Journal(tmp_path, max_bytes=4 * len(batch_text(0)))
    with history_of(tmp_path) as history:
        for batch in range(15):
            journal.append(batch_text(batch))
            if batch % 4 == 1:
                history.ingest()
        history.ingest()
        assert len(list(tmp_path.glob("events.jsonl.*"))) > 2
        assert batch_ids(history) == list(range(15))


def test_the_run_learns_that_the_journal_was_rotated(tmp_path: Path) -> None:
    """The process that renames the files gets a call, so that it can read the oldest one in time."""
    journal, told = Journal(tmp_path, max_bytes=10), []
    journal.on_rotate = lambda: told.append(1)
    for _ in range(3):
        journal.append("a line of some length")
    assert len(told) == 2


def test_two_processes_write_each_line_once(tmp_path: Path) -> None:
    """Processes that read the journal at the same time divide its lines, and none counts twice."""
    write(tmp_path, *(batch_text(batch, query) for batch in range(400) for query in range(8)))
    code = (
        "import sys; from pathlib import Path; from sqlstream.history.store import History; "
        "from sqlstream.history import lines as journal; from sqlstream.history.store import Bound; "
        "from sqlstream.app.observe.record import journal_files; journal.CHUNK_BYTES = 50_000; "
        "logs = Path(sys.argv[1]); "
        "print(History(logs, journal_files(logs), Bound(batch_days=100_000)).ingest().batches)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    written = [int(process.communicate()[0]) for process in processes]
    assert sum(written) == 3_200
    with history_of(tmp_path) as history:
        assert rows(history, "SELECT count(*) FROM batches") == [(3_200,)]
        assert rows(history, "SELECT sum(batches) FROM rollups WHERE size = 300") == [(3_200,)]


def recomputed(history: History, size: int) -> list[tuple[Any, ...]]:
    """Returns the rollups of a size computed from the batches."""
    return rows(
        history,
        f"SELECT query, at_ms / 1000 / {size} * {size} AS at, count(*), sum(rows_in), sum(rows_out), sum(duration_ms), "
        "max(duration_ms), round(sum(input_rows_per_second), 6), max(state_rows), max(watermark_lag_seconds), sum(late_rows) "
        "FROM batches GROUP BY 1, 2 ORDER BY 1, 2",
    )


def stored(history: History, size: int) -> list[tuple[Any, ...]]:
    """Returns the same from the rollups."""
    return rows(
        history,
        "SELECT query, at, batches, rows_in, rows_out, duration_ms, duration_max_ms, round(input_rows_per_second, 6), state_rows, "
        f"watermark_lag_seconds, late_rows FROM rollups WHERE size = {size} ORDER BY query, at",
    )


def test_rollups_equal_their_batches(tmp_path: Path) -> None:
    """Rollups that were added up in many parts are what a query over all batches returns."""
    with history_of(tmp_path) as history:
        for batch in range(300):
            write(tmp_path, batch_text(batch, 1), batch_text(batch, 2), batch_text(batch, 13))
            if batch % 7 == 0:
                history.ingest()
        history.ingest()
        for size in (300, 7_200):
            assert stored(history, size) == recomputed(history, size)


def test_a_history_gets_the_columns_of_new_figures(tmp_path: Path) -> None:
    """A file from before a figure keeps its batches, and has no values of it in them."""
    write(tmp_path, batch_text(0, 2))
    with history_of(tmp_path) as history:
        history.ingest()
    with closing(sqlite3.connect(tmp_path / HISTORY)) as connection:
        for table in ("batches", "rollups"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN state_bytes")
    write(tmp_path, batch_text(1, 2))
    with history_of(tmp_path) as history:
        assert (history.problems, history.ingest().batches) == ([], 1)
        assert rows(history, "SELECT batch_id, state_bytes IS NULL FROM batches ORDER BY at_ms") == [(0, 1), (1, 0)]


def test_the_bound_removes_only_batches_with_rollups(tmp_path: Path) -> None:
    """Too many batches go by whole rollups of two hours, the oldest first; their rollups remain."""
    write(tmp_path, *map(batch_text, range(1_000)))
    with history_of(tmp_path, batches=400) as history:
        history.ingest()
        left = batch_ids(history)
        assert 200 < len(left) <= 400
        assert left == list(range(1_000 - len(left), 1_000))
        assert rows(history, "SELECT sum(batches) FROM rollups WHERE size = 7200") == [(1_000,)]
        (since,) = rows(history, "SELECT value FROM facts WHERE name = 'raw_since_ms'")
        assert since[0] % 7_200_000 == 0
        assert rows(history, f"SELECT count(*) FROM batches WHERE at_ms < {since[0]}") == [(0,)]


def test_old_batches_go_and_their_rollups_stay(tmp_path: Path) -> None:
    """Batches beyond the bound of days are removed, together with the small rollups; two hours stay."""
    old = batch_text(0).replace(iso(NOW), iso(NOW - 200 * 86_400))
    write(tmp_path, old)
    with history_of(tmp_path, days=30) as history:
        history.ingest()
        assert batch_ids(history) == []
        assert rows(history, "SELECT size, batches FROM rollups") == [(7_200, 1)]


@pytest.mark.parametrize(
    "content", [b"not a database at all, but some other text" * 100, b"SQLite format 3\x00" + b"x" * 5_000]
)
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is renamed, and the history is filled from the journal."""
    write(tmp_path, *map(batch_text, range(3)))
    (tmp_path / HISTORY).write_bytes(content)
    with history_of(tmp_path) as history:
        assert history.ingest().batches == 3
        (problem,) = history.problems
    (aside,) = tmp_path.glob(f"{HISTORY}.2*Z")
    assert aside.read_bytes() == content
    assert aside.name in problem


@pytest.mark.parametrize("statement", ["PRAGMA application_id = 7", "PRAGMA user_version = 99"])
def test_a_foreign_database_is_set_aside(tmp_path: Path, statement: str) -> None:
    """A database of another program, or of another version of sqlstream, is renamed, and nothing in it is lost."""
    with history_of(tmp_path) as history:
        write(tmp_path, batch_text(0))
        history.ingest()
    with closing(sqlite3.connect(tmp_path / HISTORY)) as connection:
        connection.execute(statement)
    with history_of(tmp_path) as history:
        assert history.ingest().batches == 1
        assert len(history.problems) == 1
    (aside,) = (path for path in tmp_path.glob(f"{HISTORY}.2*Z"))
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT count(*) FROM batches").fetchone() == (1,)


def test_a_file_that_is_damaged_while_it_is_open_is_replaced(tmp_path: Path) -> None:
    """Damage that shows only while lines are written also leads to a new file."""
    write(tmp_path, *map(batch_text, range(50)))
    with history_of(tmp_path) as history:
        history.ingest()
        history.close()
    content = bytearray((tmp_path / HISTORY).read_bytes())
    content[4_096:] = b"\xff" * (len(content) - 4_096)
    (tmp_path / HISTORY).write_bytes(content)
    with history_of(tmp_path) as history:
        write(tmp_path, batch_text(50))
        assert history.ingest().batches == 51
        assert len(history.problems) == 1


def test_a_removed_file_is_made_again(tmp_path: Path) -> None:
    """A process notices that the file it has open was removed, and fills a new one."""
    write(tmp_path, batch_text(0))
    with history_of(tmp_path) as history:
        history.ingest()
        for path in tmp_path.glob(f"{HISTORY}*"):
            path.unlink()
        write(tmp_path, batch_text(1))
        assert history.ingest().batches == 2
        assert (tmp_path / HISTORY).exists()


def test_a_folder_that_cannot_be_written_gives_a_history_in_memory(tmp_path: Path) -> None:
    """The page still shows what the journal has."""
    logs = tmp_path / "logs"
    write(logs, *map(batch_text, range(3)))
    (logs / HISTORY).mkdir()  # root may write to any folder, but not to a folder as a file
    with history_of(logs) as history:
        assert not history.is_stored
        assert history.ingest().batches == 3
        assert len(history.problems) == 1
