"""A project whose storage is on a real HDFS, with a local master: only one run writes, and every command works."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from tests.services.hdfs import Hdfs, start_hdfs
from tests.spark.conftest import ProjectFolder, order_rows, rows_on_hdfs
from tests.support.short_matrix import misjudged_edits

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
EVERY = "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"
HOURLY = (
    "{{ config(sink='lake') }} select /*+ WATERMARK(ts, '1 minute') */ window.start as hour, count(*) as orders "
    "from {{ source('shop', 'orders') }} group by window(ts, '1 hour')"
)
TOTALS = (
    "{{ config(sink='lake', output_mode='complete') }} select kind, count(*) as orders "
    "from {{ source('shop', 'orders') }} group by kind"
)
MONTH = 30 * 86_400


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A running HDFS."""
    server = start_hdfs(tmp_path_factory.mktemp("hdfs"))
    yield server
    server.stop()


@pytest.fixture
def shop(orders: ProjectFolder, hdfs: Hdfs) -> ProjectFolder:
    """A project with two files of orders, whose storage is a folder of HDFS."""
    project = orders.root / "project.yml"
    target = f"storage: '{hdfs.uri}/{orders.root.name}', spark: {{{LEASE_PERIOD}: '1'}}"
    project.write_text(project.read_text().replace("storage: store", target))
    return orders


def ids_in(hdfs: Hdfs, shop: ProjectFolder, output: str) -> list[int]:
    """Returns the sorted ids of an output."""
    return sorted(row["id"] for row in rows_on_hdfs(hdfs, f"/{shop.root.name}/{output}"))


def expected_ids(files: int) -> list[int]:
    """Returns the ids in the first `files` files of orders."""
    return [row["id"] for number in range(files) for row in order_rows(number)]


EVERYTHING = expected_ids(2) + [row["id"] for row in order_rows(7)]


@pytest.mark.slow
def test_plan_and_status_start_spark(shop: ProjectFolder, hdfs: Hdfs) -> None:
    """Without --check, both read HDFS with Spark on this machine, although the master is a cluster that nobody can
    reach, with the results and exit codes of --check.
    """
    shop.write({"models/every.sql": EVERY, "models/totals.sql": TOTALS})
    assert shop.run().succeeded
    shop.write({"models/totals.sql": TOTALS.replace("count(*)", "count(kind)")})
    checked = [shop.invoke(command, "--check", "--output", "json") for command in ("plan", "status")]
    project = (shop.root / "project.yml").read_text()
    shop.write({"project.yml": project.replace("master: 'local[2]'", "master: 'spark://127.0.0.1:1'")})

    found = [shop.invoke(command, "--output", "json") for command in ("plan", "status")]

    (plan, status), (planned, known) = ([json.loads(each.out) for each in pair] for pair in (found, checked))
    assert plan == planned
    committed = [[each["versions"][0]["committed_batch"] for each in of["checkpoints"]] for of in (status, known)]
    assert committed == [[1, 1], [1, 1]]
    assert (status.keys(), status["unread"]) == (known.keys(), None)
    assert [each.code for each in found] == [each.code for each in checked] == [1, 0]
    reason = f"without data, because only Spark can read {hdfs.uri}/{shop.root.name}\n"
    assert [reason in each.err for each in found] == [True, True]


@pytest.mark.slow
def test_a_stalled_run_is_taken_over(shop: ProjectFolder, hdfs: Hdfs) -> None:
    """An active run keeps its query. A suspended one is taken over, and then writes nothing and ends with code 1."""
    shop.write({"models/every.sql": EVERY.replace("sink='lake'", "sink='lake', trigger='100 milliseconds'")})
    shop.take_over_a_stalled_run()

    assert ids_in(hdfs, shop, "every") == expected_ids(3)


@pytest.mark.slow
def test_killed_runs_leave_each_row_once(shop: ProjectFolder, hdfs: Hdfs) -> None:
    """After `kill -9` of Python and of the JVM, files and closed windows are exact."""
    files = KILLS * 6
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})
    for number in range(files):
        rows = [{**row, "ts": f"2024-01-{1 + number // 24:02}T{number % 24:02}:00:00Z"} for row in order_rows(number)]
        shop.rows(f"in/orders/{number}.json", rows, modified=number)
    shop.run_through_kills(KILLS, 7, 4)

    assert shop.run().succeeded

    assert ids_in(hdfs, shop, "every") == expected_ids(files)
    # the last two windows are open
    assert [row["orders"] for row in rows_on_hdfs(hdfs, f"/{shop.root.name}/hourly")] == [5] * (files - 2)


@pytest.mark.slow
def test_edits_are_judged_as_with_a_folder(shop: ProjectFolder, hdfs: Hdfs) -> None:
    """`run` resumes changed queries on HDFS exactly where their results agree with a run from the start."""
    assert misjudged_edits(shop.root / "edits", f"{hdfs.uri}/edits") == []


@pytest.mark.slow
def test_every_command_works(shop: ProjectFolder, hdfs: Hdfs) -> None:
    """A version runs in parallel, is promoted and rolled back; past batches are replayed, history is written, the state
    and snapshots are read; a full refresh starts another version.
    """
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY, "models/totals.sql": TOTALS})
    shop.run()
    shop.rows("in/orders/7.json", order_rows(7), modified=-MONTH)  # too old for the stream
    filled = shop.invoke("backfill", "every", "--full-range")
    assert filled.code == 0, filled.err
    assert ids_in(hdfs, shop, "every") == EVERYTHING
    shop.write({"models/every.sql": EVERY.replace("select id", "select id, 2 as two")})
    shop.run("every", parallel=("every",))

    commands = [
        ("plan", "--check"),
        ("status", "--check"),
        ("promote", "every"),
        ("rollback", "every"),
        ("replay", "every", "--batch", "1"),
        ("state", "show", "hourly"),
        ("state", "files", "every"),
        ("state", "repair", "every"),
        ("show", "--select", "totals"),
        ("run", "--available-now", "--select", "every", "--full-refresh"),
        ("maintain", "--dry-run"),
    ]
    found = {command: shop.invoke(*command) for command in commands}

    assert {command: each.err for command, each in found.items() if each.code} == {}
    path = shop.invoke("path", "every")
    assert path.out == f"{hdfs.uri}/{shop.root.name}/every.v3\n", path.err
    assert ids_in(hdfs, shop, "every.v3") == EVERYTHING
