"""`kill -9` of Python or of the JVM in the middle of a run leaves an output that Spark reads exactly.

SQLSTREAM_KILLS sets the number of kills (`make kills`: twenty).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
FILES_FOR_A_KILL = 6
"""More files than a run reads before it is killed, so that there is always work left."""


def sqlite_rows(file: Path, table: str) -> list[tuple[Any, ...]]:
    """Returns the sorted rows of a table."""
    with sqlite3.connect(file) as connection:
        return sorted(connection.execute(f"select * from {table}"))


@pytest.mark.slow
def test_killed_runs_leave_each_row_once(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Stateless rows, closed windows and running totals come out once after several runs that were killed and one that
    finishes, in files and in SQLite.
    """
    folder.write(
        {
            "models/every.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
            "models/hourly.sql": "{{ config(sink='lake') }}\nselect /*+ WATERMARK(ts, '1 minute') */ window.start as hour, "
            "count(*) as orders\nfrom {{ source('shop', 'orders') }} group by window(ts, '1 hour')\n",
            "models/_embedded.yml": "sinks: [{name: embedded, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/added.sql": "{{ config(sink='embedded') }} select id from {{ source('shop', 'orders') }}",
            "models/totals.sql": "{{ config(sink='embedded', output_mode='update', unique_key='kind') }}\n"
            "select kind, count(*) as orders from {{ source('shop', 'orders') }} group by kind",
        }
    )
    files = KILLS * FILES_FOR_A_KILL
    for number in range(files):
        rows = [{**row, "ts": f"2024-01-{1 + number // 24:02}T{number % 24:02}:00:00Z"} for row in order_rows(number)]
        folder.rows(f"in/orders/{number}.json", rows, modified=number)
    folder.run_through_kills(KILLS, 7, 4)

    done = folder.command("run", "--available-now", "--log-format", "json")
    lines = [json.loads(line) for line in done.communicate()[0].splitlines() if line.startswith("{")]

    assert lines[-1] == {**lines[-1], "event": "done", "succeeded": True}
    every = sorted(row["id"] for row in read_parquet(folder.root / "store/every"))
    assert every == sorted(10 * number + i for number in range(files) for i in range(5))
    assert sqlite_rows(folder.root / "store/added.sqlite", "added") == [(each,) for each in every]
    assert sqlite_rows(folder.root / "store/totals.sqlite", "totals") == [("a", 3 * files), ("b", 2 * files)]
    hours = sorted((f"{row['hour']:%d %H}", row["orders"]) for row in read_parquet(folder.root / "store/hourly"))
    assert hours == [(f"{1 + hour // 24:02} {hour % 24:02}", 5) for hour in range(files - 2)]  # the last two are open
