"""`sqlstream backfill --replace` on tables of Delta Lake and Iceberg: one commit replaces a range, and the stream goes on.

SQLSTREAM_KILLS sets the number of kills of the command for each format (`make kills`: ten).
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder, java_below, wait_until
from tests.support.lake_tables import FORMATS, SINKS, commits, commits_of, forget_last_commit, lake_session, rows

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))

DAYS = (
    "{{ config(sink='FORMAT', partition_by='day') }}\n"
    "select id, -amount as amount, to_date(ts) as day from {{ source('shop', 'orders') }}"
)
RANGE = ("--from", "2024-01-02", "--to", "2024-01-04")
NAMES = [f"days_{each}" for each in FORMATS]


def add_days(folder: ProjectFolder, first: int, last: int) -> None:
    """Writes one file for each day, with two orders."""
    for day in range(first, last):
        orders = [{"id": 10 * day + i, "ts": f"2024-01-{day:02}T0{i}:30:00Z", "amount": 1} for i in range(2)]
        folder.rows(f"in/orders/{day:02}.json", orders, modified=day)


@pytest.fixture
def lake(folder: ProjectFolder) -> ProjectFolder:
    """A project whose queries have written four days with negative amounts, and are then corrected."""
    folder.write({"sinks.yml": SINKS})
    fixed = DAYS.replace("-amount as amount", "amount")
    for sql, days in ((DAYS, (1, 4)), (fixed, (4, 5))):
        folder.write({f"models/days_{each}.sql": sql.replace("FORMAT", each) for each in FORMATS})
        add_days(folder, *days)
        assert folder.run().succeeded
    return folder


def amounts(folder: ProjectFolder, model: str) -> dict[int, int]:
    """Returns the amount of each order, which is there once."""
    with lake_session(folder) as session:
        found = rows(session, folder, model.partition("_")[2], model, "id", "amount")
    assert len(dict(found)) == len(found)
    return dict(found)


def backfill(folder: ProjectFolder, model: str, *arguments: str) -> dict[str, Any]:
    """Recomputes a range, and returns what the command printed."""
    done = folder.invoke("backfill", model, "--replace", "--output", "json", *arguments)
    assert done.out, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_one_commit_replaces_a_range(lake: ProjectFolder) -> None:
    """Only the rows of the range change, in one commit. A batch that the checkpoint has forgotten is still found in the
    table, and the next batch is written once.
    """
    for model in NAMES:
        before = amounts(lake, model)
        assert before == {10 * day + i: (1 if day == 4 else -1) for day in range(1, 5) for i in range(2)}
        planned = backfill(lake, model, *RANGE, "--dry-run")["recomputed"]
        assert (planned["rows_before"], planned["rows_after"]) == (4, 4)
        with lake_session(lake) as session:
            number = commits(session, lake, model.partition("_")[2], model)
        done = backfill(lake, model, *RANGE)["recomputed"]
        assert (done["column"], done["rows_before"], done["rows_after"]) == ("day", 4, 4)
        with lake_session(lake) as session:
            assert commits(session, lake, model.partition("_")[2], model) == number + 1
        after = {order: 1 if 20 <= order < 40 else amount for order, amount in before.items()}
        assert amounts(lake, model) == after
        forget_last_commit(lake, model)
    add_days(lake, 5, 6)
    assert lake.run().succeeded
    for model in NAMES:
        assert amounts(lake, model) == {10 * day + i: (-1 if day == 1 else 1) for day in range(1, 6) for i in range(2)}


def data_of(table: Path) -> set[str]:
    """Returns the data files of a table in either format, committed ones and others."""
    return {path.name for path in table.rglob("*.parquet")}


def kill(folder: ProjectFolder, model: str, *, committed: bool) -> None:
    """Recomputes the range, and ends the command by `kill -9` when the table has a new data file, or a new commit."""
    table = folder.root / "store" / model
    seen = commits_of if committed else data_of
    before = seen(table)
    process = folder.command("backfill", model, "--replace", *RANGE)
    wait_until(process, lambda: seen(table) != before)
    os.kill(java_below(process.pid), signal.SIGKILL)  # first, because its lock would outlive Python
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_killed_command_leaves_old_or_new_rows(lake: ProjectFolder) -> None:
    """After a kill the table has all rows of the range as before the commit, or all as after it. The stream and the next
    command go on in both cases.
    """
    for model in NAMES:
        for number in range(KILLS):
            old = amounts(lake, model)
            new = {order: number + 2 if 20 <= order < 40 else amount for order, amount in old.items()}
            sql = DAYS.replace("-amount as amount", f"amount * {number + 2} as amount")
            lake.write({f"models/{model}.sql": sql.replace("FORMAT", model.partition("_")[2])})
            committed = number >= KILLS // 2
            kill(lake, model, committed=committed)
            assert amounts(lake, model) in ((new,) if committed else (old, new))
        assert amounts(lake, model) != old
        day = 5 + NAMES.index(model)
        add_days(lake, day, day + 1)
        assert lake.run(model).succeeded
        added = {10 * n + i: KILLS + 1 for n in range(5, day + 1) for i in range(2)}
        assert amounts(lake, model) == {**new, **added}
        assert backfill(lake, model, *RANGE)["recomputed"]["rows_after"] == 4
        assert amounts(lake, model) == {**new, **added}


@pytest.mark.slow
def test_rows_within_files(folder: ProjectFolder) -> None:
    """Delta Lake replaces rows by a time that does not partition the table. Iceberg replaces whole files, and refuses
    others; the table is as before.
    """
    sql = "{{ config(sink='FORMAT') }} select id, ts, -amount as amount from {{ source('shop', 'orders') }}"
    folder.write({"sinks.yml": SINKS})
    folder.write({f"models/days_{each}.sql": sql.replace("FORMAT", each) for each in FORMATS})
    add_days(folder, 1, 3)
    assert folder.run().succeeded
    fixed = sql.replace("-amount as amount", "amount")
    folder.write({f"models/days_{each}.sql": fixed.replace("FORMAT", each) for each in FORMATS})
    add_days(folder, 3, 4)
    assert folder.run().succeeded
    limits = ("--from", "2024-01-02T01:00", "--to", "2024-01-03")

    assert backfill(folder, "days_delta", *limits)["recomputed"]["rows_before"] == 1
    refused = backfill(folder, "days_iceberg", *limits)

    assert [finding["code"] for finding in refused["findings"]] == ["cannot-backfill"]
    old = {10: -1, 11: -1, 20: -1, 21: -1, 30: 1, 31: 1}
    assert amounts(folder, "days_delta") == {**old, 21: 1}
    assert amounts(folder, "days_iceberg") == old


@pytest.mark.slow
def test_a_delta_table_is_read_up_to_the_version_of_the_stream(folder: ProjectFolder) -> None:
    """The stream has read a snapshot and later commits. Its rows are computed again, and not those that it has not read
    yet. The table itself cannot be recomputed, because a stream reads it.
    """
    source = (
        "  - name: lake\n    tables:\n"
        "      - {name: raw, format: delta, path: store/raw, schema: 'id int, amount int, day date'}\n"
    )
    sources = folder.root / "sources.yml"
    raw = "{{ config(sink='delta') }} select id, amount, to_date(ts) as day from {{ source('shop', 'orders') }}"
    copy = "{{ config(sink='delta') }} select id, -amount as amount, day from {{ source('lake', 'raw') }}"
    folder.write({"sinks.yml": SINKS, "sources.yml": sources.read_text() + source, "models/raw.sql": raw})
    folder.write({"models/copied_delta.sql": copy})
    for first, select in ((1, "raw"), (2, "raw copied_delta"), (3, "raw copied_delta"), (4, "raw")):
        add_days(folder, first, first + 1)
        for name in select.split():
            assert folder.run(name).succeeded
        if first == 2:
            folder.write({"models/copied_delta.sql": copy.replace("-amount as amount", "amount")})

    done = backfill(folder, "copied_delta", "--from", "2024-01-01", "--to", "2024-02-01")["recomputed"]
    refused = backfill(folder, "raw", *RANGE)

    assert (done["rows_before"], done["rows_after"]) == (6, 6)
    assert amounts(folder, "copied_delta") == {10 * day + i: 1 for day in range(1, 4) for i in range(2)}
    assert [finding["code"] for finding in refused["findings"]] == ["cannot-backfill"]
    assert folder.run("copied_delta").succeeded
    assert amounts(folder, "copied_delta") == {10 * day + i: 1 for day in range(1, 5) for i in range(2)}
