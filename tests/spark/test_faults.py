"""Faults around a query: each failure names the model, its batch and the cause, the other queries continue, and the
next run resumes exactly.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.runs.events import QueryResult, Status
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

IDS = "select id from {{ source('shop', 'orders') }}"

SINKS = """
import json
from pathlib import Path

OUT = Path({out!r})


def send(rows, batch):
    fails = OUT / "fails"
    when = fails.read_text() if fails.exists() else ""
    if when == "before" and batch.id == 1:
        raise OSError("the door is shut")
    with open(OUT / "sent", "a") as file:
        file.write(json.dumps([batch.id, sorted(row.id for row in rows.collect())]) + chr(10))
    if when == "after" and batch.id == 1:
        raise OSError("the door is shut")
"""

FUNCTIONS = """
from pyspark.sql.functions import udf


@udf("int")
def checked(value):
    if value == 13:
        raise ValueError(f"{value} brings bad luck")
    return value
"""


@pytest.fixture
def faulty(orders: ProjectFolder) -> ProjectFolder:
    """The project of orders with a good query, and Python code that can fail in batch 1 at row 13."""
    orders.write(
        {
            "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store}}\n"
            "functions: [functions:checked]\nmodels: {+retries: {attempts: 0}}\n",
            "python/sinks.py": SINKS.format(out=str(orders.root)),
            "python/functions.py": FUNCTIONS,
            "models/_sent.yml": "sinks: [{name: door, format: python, function: sinks:send}]\n",
            "models/good.sql": f"{{{{ config(sink='lake') }}}} {IDS}",
        }
    )
    return orders


def sent(project: ProjectFolder) -> list[tuple[int, list[int]]]:
    """Returns the complete batches that the sink received, with their rows."""
    return [tuple(json.loads(line)) for line in (project.root / "sent").read_text().splitlines()]


def failure_of(result: QueryResult) -> tuple[str, str]:
    """Returns the message and location of a failure, and its cause."""
    assert result.status is Status.ERROR
    assert result.finding is not None
    assert "\n" not in result.finding.why
    return f"{result.finding.location}: {result.finding.message}", result.finding.why


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_sink_gets_its_batch_again(faulty: ProjectFolder, when: str) -> None:
    """A sink that fails gets the same batch again under the same number, by which it can detect a repeated batch."""
    faulty.write({"models/poor.sql": f"{{{{ config(sink='door') }}}} {IDS}", "fails": when})
    first, second = [0, 1, 2, 3, 4], [10, 11, 12, 13, 14]

    good, poor = faulty.run().results

    assert (good.status, good.rows_out) == (Status.SUCCESS, 10)
    what, why = failure_of(poor)
    assert what == "models/poor.sql:1:1: the query of `poor` failed in batch 1"
    assert why.startswith("Spark reports: OSError: the door is shut (sinks.py line ")
    assert sent(faulty) == [(0, first), (1, second)][: 1 if when == "before" else 2]

    (faulty.root / "fails").unlink()
    faulty.rows("in/orders/5.json", [{"id": 50}], modified=5)
    assert faulty.run().succeeded
    again = [(1, second)] if when == "after" else []
    assert sent(faulty) == [(0, first), *again, (1, second), (2, [50])]


@pytest.mark.slow
def test_a_python_function_that_fails(faulty: ProjectFolder, read_parquet: Rows) -> None:
    """An exception in a Python function is the cause that is reported; after a fix no row is lost or repeated."""
    faulty.write({"models/poor.sql": f"{{{{ config(sink='lake') }}}} select checked(id) as id from ({IDS})"})

    good, poor = faulty.run().results

    assert (good.status, good.rows_out) == (Status.SUCCESS, 10)
    what, why = failure_of(poor)
    assert what == "models/poor.sql:1:1: the query of `poor` failed in batch 1"
    assert "ValueError: 13 brings bad luck (functions.py line 8, in checked)" in why

    functions = faulty.root / "python/functions.py"
    functions.write_text(functions.read_text().replace("value == 13", "False"))
    assert faulty.run().succeeded
    assert sorted(row["id"] for row in read_parquet(faulty.root / "store/poor")) == [0, 1, 2, 3, 4, *range(10, 15)]


@pytest.mark.slow
def test_one_failed_query_of_twenty(faulty: ProjectFolder) -> None:
    """When one query of twenty fails, the other nineteen finish."""
    for number in range(19):
        expression = "id / (id - 13)" if number == 7 else "id"
        faulty.write(
            {f"models/m{number:02}.sql": f"{{{{ config(sink='nowhere') }}}} select {expression} as x from ({IDS})"}
        )

    outcome = faulty.run()

    poor = next(result for result in outcome.results if result.model == "m07")
    assert failure_of(poor)[0] == "models/m07.sql:1:37: the query of `m07` failed in batch 1"
    others = [result for result in outcome.results if result is not poor]
    assert [(result.status, result.rows_out) for result in others] == [(Status.SUCCESS, 10)] * 19
    assert not outcome.succeeded


DISK = """
set -e
mount -t tmpfs -o size={size}k none store
"$@"
mount -o remount,size=100m store
"$@"
cp -r store kept
"""
"""Two runs on a small disk that is full in the first. Only this shell can see the mount, and it ends with the shell."""


@pytest.mark.slow
def test_a_full_disk(orders: ProjectFolder, read_parquet: Rows) -> None:
    """On a full disk the query reports it and queries elsewhere continue; with free space each row comes out once."""
    for number in range(2, 12):
        orders.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    orders.write(
        {
            "store/.keep": "",
            "models/wide.sql": "{{ config(sink='lake', retries={'attempts': 0}) }} "
            f"select id, array_join(transform(sequence(1, 4000), x -> uuid()), ' ') as text from ({IDS})",
            "models/good.sql": f"{{{{ config(sink='nowhere', checkpoint='{orders.root}/elsewhere') }}}} {IDS}",
        }
    )
    run = (sys.executable, "-m", "sqlstream", "run", "--available-now")
    script = DISK.format(size=3000).replace('"$@"', '"$@" || true', 1)
    if subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("this system lets nobody but root mount a disk")

    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", *run],
        cwd=orders.root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_WAIT_SECONDS,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "the query of `wide` failed in batch" in done.stdout
    assert "No space left on device" in done.stdout
    (orders.root / "store/.keep").unlink()
    (orders.root / "store").rmdir()
    (orders.root / "kept").rename(orders.root / "store")
    ids = sorted(row["id"] for row in read_parquet(orders.root / "store/wide"))
    assert ids == [10 * number + i for number in range(12) for i in range(5)]
