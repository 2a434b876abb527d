"""The table of a memory sink: complete in JSON, cut for people, and visible to other processes during the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from sqlstream.state.runs.events import TableShown
from tests.spark.conftest import ProjectFolder, order_rows, wait_for

MODEL = """{{ config(sink='table', trigger='100 milliseconds') }}
select id, kind, cast(amount / 4 as decimal(10,2)) as share, array(id) as ids from {{ source('shop', 'orders') }}"""
ROW = {"id": 3, "kind": "b", "share": 0.75, "ids": [3]}


def shown(folder: ProjectFolder, *arguments: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Returns the messages of `show`, and the rows of its JSON."""
    done = folder.invoke("show", "-s", "shown", "--output", "json", *arguments)
    assert done.code == 0, done
    rows: list[dict[str, Any]] = json.loads(done.out)["results"][0]["rows"]
    return done.err.splitlines(), rows


@pytest.fixture
def running(orders: ProjectFolder) -> ProjectFolder:
    """A project with 30 orders, more than the default limit shows."""
    orders.rows("in/orders/2.json", order_rows(2, 20), modified=2)
    orders.write({"models/shown.sql": MODEL})
    return orders


@pytest.mark.slow
def test_json_has_the_whole_table(running: ProjectFolder) -> None:
    """JSON has the whole table with typed values; people see the first 20 rows, or as many as `--limit` says."""
    lines = running.invoke("run", "--available-now", "--log-format", "json").out.splitlines()

    (table,) = [line for line in map(json.loads, lines) if line["event"] == "memory_table"]
    assert (table["columns"], table["count"], len(table["rows"])) == (list(ROW), 30, 30)
    assert list(ROW.values()) in table["rows"]

    text = running.invoke("run", "--available-now", "--limit", "7").out
    assert "shown (30 rows, the first 7 shown; use --limit to show more)" in text


def end(process: subprocess.Popen[str]) -> None:
    """Ends a run with SIGTERM, as a supervisor does, and waits for it."""
    os.kill(process.pid, signal.SIGTERM)
    process.communicate()


@pytest.mark.slow
def test_show_gives_the_table_of_a_running_query(running: ProjectFolder) -> None:
    """During a run `show` gets the table from the run's process without Spark; afterwards it reads the sources."""
    process = running.command("run")
    wait_for(process, "shown batch 2:")

    printed, rows = shown(running, "--limit", "50")
    assert printed == [f"shown is running in process {process.pid}; its in-memory table has 30 rows so far"]
    assert len(rows) == 30
    assert ROW in rows
    assert len(shown(running)[1]) == 5
    end(process)

    assert list((running.root / "target/live").iterdir()) == []
    printed, rows = shown(running, "--limit", "50")
    assert (printed, len(rows)) == (["Starting Spark"], 30)


@pytest.mark.slow
def test_an_empty_table_shows_its_columns(folder: ProjectFolder) -> None:
    """A table without rows yet shows its columns and no rows, not the rows that the model would give as a batch."""
    (folder.root / "in/orders").mkdir(parents=True)
    folder.write({"models/shown.sql": MODEL})
    process = folder.command("run")
    wait_for(process, "START stream shown")
    try:
        printed, rows = shown(folder)
    finally:
        end(process)

    assert rows == []
    assert "0 rows so far" in printed[0]


def test_a_table_in_update_mode_has_the_newest_row_of_each_key(orders: ProjectFolder) -> None:
    """Each batch adds the groups that it changes to Spark's table; the shown table has each group once."""
    model = (
        "{{ config(sink='table', output_mode='update') }} "
        "select kind, count(*) as n, sum(amount) as total from {{ source('shop', 'orders') }} group by kind"
    )
    orders.write({"models/totals.sql": model})

    orders.run()

    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert (sorted(shown.rows), shown.count) == ([("a", 6, 12), ("b", 4, 8)], 2)
