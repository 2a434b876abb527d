"""The limit of RocksDB's memory, and which queries it gets without a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load_for_reading
from sqlstream.compiler.trees import state_never_shrinks
from sqlstream.spark.jvm.state_store import MAX_MEGABYTES, memory_settings

FILES = {
    "project.yml": "name: shop\nrules: {unbounded-state: ignore}\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, ts timestamp, kind string'}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
}
ORDERS = "{{ source('shop', 'orders') }}"
MARKED = f"{ORDERS} WATERMARK ts DELAY OF INTERVAL 1 MINUTE"


@pytest.mark.parametrize(
    ("spark", "megabytes"),
    [
        ({}, 192),  # half of 384 MiB, which Spark plans at least
        ({"spark.driver.memory": "2g"}, 192),
        ({"spark.driver.memory": "8g"}, 410),
        ({"spark.driver.memory": "10240"}, 512),  # MiB without a unit
        ({"spark.driver.memoryOverhead": "2g"}, 1024),
        ({"spark.executor.memory": "64g"}, 192),  # there are no executors
        ({"spark.driver.memory": "{{ odd }}"}, 192),  # Spark reports it
    ],
)
def test_the_limit_is_half_of_the_memory_beside_the_heap(spark: dict[str, str], megabytes: int) -> None:
    """A local master counts the driver's memory."""
    assert memory_settings(spark, is_local=True)[MAX_MEGABYTES] == str(megabytes)


def test_a_cluster_counts_the_memory_of_executors() -> None:
    """Each executor has a limit of its memory, in any of Spark's units."""
    settings = {"spark.driver.memory": "64g", "spark.executor.memory": "16384MB"}

    assert memory_settings(settings, is_local=False)[MAX_MEGABYTES] == "819"


@pytest.mark.parametrize(
    ("mode", "sql", "expected"),
    [
        ("update", f"select kind, count(*) as n from {ORDERS} group by kind", True),
        ("complete", f"select kind, count(*) as n from {ORDERS} group by kind", False),
        ("update", f"select count(*) as n from {MARKED} group by window(ts, '1 hour')", False),
        ("append", f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id", True),
        ("append", f"select id from {ORDERS}", False),
    ],
)
def test_state_that_never_shrinks(tmp_path: Path, mode: str, sql: str, expected: bool) -> None:
    """It is that of which `unbounded-state` warns, whether or not the project shows the warning. A comment in the model
    that allows it says that the state stays small.
    """
    text = f"{{{{ config(sink='out', output_mode='{mode}') }}}}\n{sql}\n"

    assert never_shrinks(tmp_path / "plain", text) is expected
    assert not never_shrinks(tmp_path / "few", f"-- sqlstream: allow unbounded-state because there are few\n{text}")


def never_shrinks(folder: Path, sql: str) -> bool:
    """Returns what the compiler says of a model."""
    (folder / "models").mkdir(parents=True)
    for name, text in {**FILES, "models/m.sql": sql}.items():
        (folder / name).write_text(text)
    compiled = load_for_reading(ProjectRequest(folder)).compiled
    (model,) = compiled.models.values()
    return state_never_shrinks(compiled, model)
