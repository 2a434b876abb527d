"""`kill -9` right after a table has committed, before its checkpoint has, leaves tables that are exact.

SQLSTREAM_KILLS sets the number of kills (`make kills`: ten).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest

from tests.spark.conftest import ProjectFolder, java_below
from tests.support.lake_tables import FORMATS, SINKS, commits_of, lake_session, rows

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
FILES_FOR_A_KILL = 6
POLL_SECONDS = 0.005
KEYS = 5

QUERIES = {
    "totals": "{{ config(sink='FORMAT', output_mode='update', unique_key='kind') }}\n"
    "select kind, sum(amount) as total, count(*) as orders from {{ source('shop', 'orders') }} group by kind",
    "newest": "{{ config(sink='FORMAT', unique_key='kind', delete_when='amount < 0', sequence_by='id') }}\n"
    "select kind, id, amount from {{ source('shop', 'orders') }}",
    "versions": "{{ config(sink='FORMAT', unique_key='kind', delete_when='amount < 0', sequence_by='id', history=true) }}\n"
    "select kind, id, amount from {{ source('shop', 'orders') }}",
}


def wait_for_commits(process: subprocess.Popen[str], table: Path, number: int) -> None:
    """Waits until a table has this many new commits."""
    before = commits_of(table)
    while len(commits_of(table) - before) < number:
        with pytest.raises(subprocess.TimeoutExpired):  # it still runs
            process.wait(POLL_SECONDS)


def versions_of(key: int, given: Sequence[tuple[int, int, int]]) -> list[tuple[str, int, int, int | None, bool]]:
    """Returns the versions (kind, id, amount, valid_to, is_current) of a key, whose id grows with each file."""
    found: list[tuple[str, int, int, int | None, bool]] = []
    is_open, before = False, None
    for file, _, amount in (each for each in given if each[1] == key):
        at = KEYS * file + key
        if is_open and amount == before:
            kind, _, _, _, _ = found[-1]
            found[-1] = (kind, at, amount, None, True)
            continue
        if is_open:
            kind, began, old, _, _ = found[-1]
            found[-1] = (kind, began, old, at, False)
        is_open, before = amount >= 0, amount
        if is_open:
            found.append((f"k{key}", at, amount, None, True))
    return found


def test_killed_runs_leave_exact_tables(folder: ProjectFolder) -> None:
    """Sums, the newest row and all versions of each key, and deleted rows are as after one run without kills.

    After a kill Spark can put two files into one batch, so `sequence_by` orders the rows of a key.
    """
    folder.write({"sinks.yml": SINKS})
    for each in FORMATS:
        folder.write({f"models/{name}_{each}.sql": sql.replace("FORMAT", each) for name, sql in QUERIES.items()})
    files = KILLS * FILES_FOR_A_KILL + 1
    given = [(file, key, file % 3 - 1 + key % 2) for file in range(files) for key in range(KEYS)]
    for file in range(files):
        orders = [{"id": KEYS * file + key, "kind": f"k{key}", "amount": n} for f, key, n in given if f == file]
        folder.rows(f"in/orders/{file}.json", orders, modified=file)
    order = random.Random(7)
    for number in range(KILLS):
        process = folder.command("run", "--available-now")
        output = Thread(target=process.communicate)  # a full pipe would stop the process
        output.start()
        tables = [folder.root / "store" / f"{name}_{FORMATS[number // 2 % 2]}" for name in QUERIES]
        slowest = min(tables, key=lambda table: len(commits_of(table)))  # it certainly has files left
        wait_for_commits(process, slowest, order.randint(2, 3))
        os.kill(process.pid if number % 2 else java_below(process.pid), signal.SIGKILL)
        output.join()
        assert process.returncode != 0

    assert folder.run().succeeded

    totals = [(f"k{key}", sum(n for _, k, n in given if k == key), files) for key in range(KEYS)]
    newest = [(f"k{key}", KEYS * file + key, n) for file, key, n in given if file == files - 1 and n >= 0]
    versions = [version for key in range(KEYS) for version in versions_of(key, given)]
    with lake_session(folder) as session:
        for each in FORMATS:
            assert rows(session, folder, each, f"totals_{each}") == totals
            assert rows(session, folder, each, f"newest_{each}") == newest
            found = rows(session, folder, each, f"versions_{each}", "kind", "id", "amount", "valid_to", "is_current")
            assert found == sorted(versions, key=str)
