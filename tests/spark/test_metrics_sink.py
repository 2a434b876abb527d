"""Runs that write their metrics as rows to real sinks."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pyarrow.dataset
import pytest

from sqlstream.app.observe import metrics_sink
from sqlstream.state.runs.events import Notice
from tests.services.kafka_topics import Topic
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

MODEL = "{{ config(sink='lake') }}\nselect id, amount from {{ source('shop', 'orders') }}\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a run waits for the last rows as long as it takes."""
    monkeypatch.setattr(metrics_sink, "FINISH_SECONDS", LONGEST_WAIT_SECONDS)


def with_metrics(folder: ProjectFolder, sink: str) -> None:
    """Adds a model, and a sink for metrics."""
    project = folder.root / "project.yml"
    project.write_text(project.read_text() + "metrics: {sink: metrics}\n")
    folder.write({"models/copies.sql": MODEL, "models/_metrics.yml": f"sinks: [{sink}]\n"})


def notices(folder: ProjectFolder) -> list[str]:
    """Returns the messages of the last run."""
    return [event.text for event in folder.events if isinstance(event, Notice)]


@pytest.mark.slow
def test_files_get_a_row_for_each_batch(orders: ProjectFolder) -> None:
    """Each run adds files with the rows of its batches to a folder that any reader can read, partitioned by day."""
    with_metrics(orders, "{name: metrics, format: parquet, path: '{{ model.name }}', partition_by: [date]}")
    assert orders.run().succeeded
    orders.rows("in/orders/9.json", [{"id": 9}], modified=9)
    assert orders.run().succeeded

    folder = orders.root / "store" / "sqlstream_metrics"
    rows = pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    assert sorted((row["batch_id"], row["rows_in"], row["rows_out"]) for row in rows) == [
        (0, 5, 5),
        (1, 5, 5),
        (2, 1, 1),
    ]
    assert {(row["project"], row["target"], row["model"]) for row in rows} == {("shop", "local", "copies")}
    assert len({row["invocation_id"] for row in rows}) == 2
    assert all(row["duration_ms"] >= row["add_batch_ms"] > 0 for row in rows)
    assert [source["name"] for source in json.loads(rows[0]["sources"])] == ["shop.orders"]
    assert not (folder / "_spark_metadata").exists()


@pytest.mark.slow
def test_a_database_gets_the_rows(orders: ProjectFolder) -> None:
    """A SQLite file gets a table of metrics."""
    with_metrics(orders, "{name: metrics, format: sqlite, path: metrics.db}")
    assert orders.run().succeeded
    with sqlite3.connect(orders.root / "store" / "metrics.db") as connection:
        found = connection.execute(
            "select batch_id, rows_in, time > '2020' from sqlstream_metrics order by 1"
        ).fetchall()
    assert found == [(0, 5, 1), (1, 5, 1)]


@pytest.mark.slow
def test_kafka_gets_the_rows_as_json(orders: ProjectFolder, topic: Topic) -> None:
    """A topic gets a record for each batch, with the model as its key."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', topic: {topic.name}}}"
    with_metrics(orders, f"{{name: metrics, format: kafka, key: model, options: {options}}}")
    assert orders.run().succeeded
    records = [json.loads(record.value) for record in topic.records() if record.value is not None]
    assert [(record["batch_id"], record["rows_in"]) for record in records] == [(0, 5), (1, 5)]
    assert {record.key for record in topic.records()} == {b'{"model":"copies"}'}


def test_a_sink_that_fails_harms_no_query(orders: ProjectFolder) -> None:
    """The queries of a run succeed although the folder for metrics is a file; the run says so, and what is lost."""
    with_metrics(orders, "{name: metrics, format: json, path: taken}")
    orders.write({"store/taken": "a file"})
    assert orders.run().succeeded
    texts = notices(orders)
    assert [text.split(" (")[0] for text in texts if "metrics" in text] == [
        "metrics cannot be written to sink metrics",
        "2 rows of metrics were not written to sink metrics",
    ]
    assert Path(orders.root / "store" / "taken").read_text() == "a file"


def test_the_output_of_a_query_is_refused(orders: ProjectFolder) -> None:
    """Files that the log of a query does not list would be invisible, so a folder with such a log gets no metrics."""
    with_metrics(orders, "{name: metrics, format: parquet, path: mixed}")
    orders.write({"store/mixed/_spark_metadata/0": "v1\n"})
    assert orders.run().succeeded
    assert any("a streaming query has written to this folder" in text for text in notices(orders))
    assert [path.name for path in (orders.root / "store" / "mixed").iterdir()] == ["_spark_metadata"]
