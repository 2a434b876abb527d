"""Queries run to the end of their input, and again; their reported results are true."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import Status, TableShown, WarningEmitted
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, order_rows, wait_for

Rows = Callable[[Path], list[dict[str, Any]]]

BIG = (
    "{{ config(sink='lake', partition_by=['kind']) }}\nselect * from {{ source('shop', 'orders') }} where amount > 0\n"
)


@pytest.mark.smoke
def test_every_row_is_written_once_over_several_runs(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A second run processes no row twice, and reads a file that was added between the runs."""
    orders.write({"models/big.sql": BIG})

    first = orders.result()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    second = orders.result()
    third = orders.result()

    assert [first.batches, second.batches, third.batches] == [2, 1, 0]
    assert [first.status, second.status, third.status] == [Status.SUCCESS] * 3
    ids = sorted(row["id"] for row in read_parquet(orders.root / "store" / "big"))
    assert ids == [1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24]
    assert orders.committed("big") == {"0", "1", "2"}


def test_row_counts_are_correct(orders: ProjectFolder) -> None:
    """Rows in count all rows of the files, although the reader could apply the filter; rows out count the kept rows."""
    orders.write({"models/big.sql": BIG})

    result = orders.result()

    assert (result.rows_in, result.rows_out) == (10, 8)
    batches = [event for event in orders.events if isinstance(event, BatchProgress)]
    assert [(batch.batch_id, batch.rows_in, batch.rows_out) for batch in batches] == [(0, 5, 4), (1, 5, 4)]


def test_uncounted_rows_are_unknown(orders: ProjectFolder, written: Path) -> None:
    """When a Parquet filter skips rows unread, the number of rows in is unknown instead of 0."""
    orders.write(
        {
            "models/_rows.yml": "sources:\n  - name: made\n    tables:\n"
            f"      - {{name: rows, format: parquet, path: '{written}', schema: id int}}\n",
            "models/none.sql": "{{ config(sink='nowhere') }} select * from {{ source('made', 'rows') }} where id > 1000",
        }
    )

    result = orders.result()

    assert (result.batches, result.rows_in, result.rows_out) == (1, None, 0)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with one Parquet file of three rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int32())}), folder / "rows.parquet")
    return folder


@pytest.mark.slow
def test_totals_include_all_batches(orders: ProjectFolder) -> None:
    """A run of more batches than Spark keeps progress for (100) still has correct totals."""
    for number in range(2, 110):
        orders.rows(f"in/orders/{number}.json", [{"id": number}], modified=number)
    orders.write({"models/all.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"})

    result = orders.result()

    assert (result.batches, result.rows_in, result.rows_out) == (110, 118, 118)


def test_results_and_ledger_are_written(orders: ProjectFolder) -> None:
    """run_results.json and the JSON on stdout have the result of each query; the ledger is there before the first
    batch.
    """
    orders.write({"models/big.sql": BIG})

    done = orders.invoke("run", "--available-now", "--output", "json")

    results = json.loads((orders.root / "target/run_results.json").read_text())
    shown = json.loads(done.out)
    assert (done.code, shown["command"], shown["succeeded"], shown["findings"]) == (0, "run", True, [])
    assert shown["results"] == results["results"]
    assert results["results"][0]["unique_id"] == "model.shop.big"
    assert (results["results"][0]["status"], results["results"][0]["rows_out"]) == ("success", 8)
    ledger = json.loads((orders.root / "store/queries/big/v1/ledger.json").read_text())
    assert ledger["identity"]["models"]["big"] == (orders.root / "target/compiled/shop/models/big.sql").read_text()
    assert ledger["identity"]["sink_format"] == "parquet"
    assert ledger["identity"]["output_mode"] == "append"
    assert ledger["identity"]["settings"]["spark.sql.shuffle.partitions"] == "2"
    assert [use["name"] for use in ledger["identity"]["sources"]] == ["shop__orders"]


@pytest.mark.smoke
def test_a_memory_table_is_shown_when_the_run_ends(orders: ProjectFolder) -> None:
    """A memory table is shown after the last batch, in the order of the query's ORDER BY."""
    orders.write(
        {
            "models/totals.sql": "{{ config(sink='table', output_mode='complete') }}\n"
            "select kind, sum(amount) as total from {{ source('shop', 'orders') }} group by kind order by kind",
        }
    )

    orders.run()

    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert (shown.columns, shown.rows, shown.count) == (("kind", "total"), (("a", 12), ("b", 8)), 2)


@pytest.mark.slow
def test_nothing_starts_when_one_query_is_refused(orders: ProjectFolder) -> None:
    """Spark checks every query before the first one starts; one refusal starts none, and all findings come together."""
    orders.write(
        {
            "models/big.sql": BIG,
            "models/bad.sql": "{{ config(sink='lake') }}\nselect id,\n  array_contains(array(id), array(id)) as n\nfrom {{ source('shop', 'orders') }}",
            "models/worse.sql": "{{ config(sink='nowhere') }}\nfrom (from {{ source('shop', 'orders') }} map id, kind using 'cat' "
            "as id, kind cluster by id) reduce id, kind using 'cat' as a, b",
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    found = {(finding.code, str(finding.location)) for finding in caught.value.findings}
    assert found == {("sql-analysis", "models/bad.sql:3:3"), ("output-mode", "models/worse.sql:1:1")}
    assert not (orders.root / "store/big").exists()
    assert not (orders.root / "store/queries").exists()


@pytest.mark.slow
def test_a_run_warns_only_about_its_models(orders: ProjectFolder) -> None:
    """A run prints and counts only warnings about its selected and upstream models."""
    kinds = "select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind"
    orders.write(
        {
            "models/big.sql": BIG,
            "models/kinds.sql": kinds,
            "models/growing.sql": "{{ config(sink='nowhere', output_mode='update') }} select n from {{ ref('kinds') }}",
            "models/leaf.sql": "select id from {{ source('shop', 'orders') }}",
        }
    )

    assert orders.run("big").warnings == ()
    assert not [event for event in orders.events if isinstance(event, WarningEmitted)]
    (warning,) = orders.run("growing").warnings
    assert (warning.code, warning.location and warning.location.path) == ("unbounded-state", "models/kinds.sql")


def test_a_failed_query_does_not_stop_the_others(orders: ProjectFolder) -> None:
    """A query that fails in a batch is reported with its cause; the others run to their end."""
    orders.write(
        {
            "models/good.sql": BIG,
            "models/poor.sql": "{{ config(sink='nowhere') }} select raise_error('no ' || kind) as x from {{ source('shop', 'orders') }}",
        }
    )

    outcome = orders.run()

    good, poor = outcome.results
    assert (good.status, good.rows_out) == (Status.SUCCESS, 8)
    assert poor.status is Status.ERROR
    assert poor.finding is not None
    assert "no a" in poor.finding.why
    assert "\n" not in poor.finding.why
    assert not outcome.succeeded


def test_once_runs_one_batch_over_all_data(orders: ProjectFolder) -> None:
    """`once` runs one batch over all available data, ignoring the source's limits, as Spark does today."""
    orders.write(
        {"models/all.sql": "{{ config(sink='lake', trigger='once') }} select id from {{ source('shop', 'orders') }}"}
    )

    result = orders.result(available_now=False)

    assert (result.batches, result.rows_in, result.rows_out) == (1, 10, 10)


@pytest.mark.slow
def test_the_output_can_be_queried_during_a_run(orders: ProjectFolder, spark: SparkSession) -> None:
    """During a run, another Spark session reads whole batches, and sees the next batch after it is written."""
    orders.write(
        {
            "models/all.sql": "{{ config(sink='lake', trigger='1 second') }} select id from {{ source('shop', 'orders') }}"
        }
    )
    process = orders.command("run")
    wait_for(process, "all batch 1:")
    output = str(orders.root / "store/all")

    before = spark.read.parquet(output).count()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    wait_for(process, "all batch 2:")
    after = spark.read.parquet(output).count()
    process.terminate()
    process.communicate(timeout=LONGEST_WAIT_SECONDS)
    spark.stop()

    assert (before, after) == (10, 15)
