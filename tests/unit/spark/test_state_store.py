"""The limit of RocksDB's memory, and which queries it gets without a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load_for_reading
from sqlstream.compiler.trees import state_never_shrinks
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.state_store import (
    IS_BOUNDED,
    LEAST_OVERHEAD_OF_EXECUTORS,
    MAX_MEGABYTES,
    memory_settings,
    rocksdb_bytes,
)

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
        ({}, 512),
        ({"spark.driver.memory": "8g"}, 512),
        ({"spark.driver.memory": "20480"}, 1024),  # half of a tenth, in MiB without a unit
        ({"spark.driver.memoryOverhead": "2g"}, 1024),
        ({"spark.driver.memoryOverhead": "300m"}, 150),
        ({"spark.executor.memory": "64g"}, 512),  # there are no executors
        ({"spark.driver.memory": "{{ odd }}"}, 512),  # Spark reports it
    ],
)
def test_the_limit_on_a_local_master(spark: dict[str, str], megabytes: int) -> None:
    """It is half of the driver's memory beside the heap, if the target says how much that is."""
    assert memory_settings(spark, is_local=True) == {IS_BOUNDED: "true", MAX_MEGABYTES: str(megabytes)}


@pytest.mark.parametrize(
    ("spark", "megabytes", "has_more"),
    [
        ({"spark.driver.memory": "64g", "spark.driver.memoryOverhead": "2g"}, 512, True),
        ({"spark.executor.memory": "16384MB"}, 819, True),
        ({"spark.executor.memoryOverhead": "600m"}, 300, False),
        ({"spark.executor.memoryOverheadFactor": "0.4"}, 205, False),
        ({"spark.kubernetes.memoryOverheadFactor": "0.5", "spark.executor.memory": "4g"}, 1024, False),
        ({"spark.executor.minMemoryOverhead": "2g"}, 1024, False),
    ],
)
def test_the_limit_on_a_cluster(spark: dict[str, str], megabytes: int, has_more: bool) -> None:
    """Executors get more memory beside the heap, unless the target decides about it."""
    found = memory_settings(spark, is_local=False)

    assert found[MAX_MEGABYTES] == str(megabytes)
    assert found.get(LEAST_OVERHEAD_OF_EXECUTORS) == ("896m" if has_more else None)


@pytest.mark.parametrize(
    ("spark", "expected"),
    [({}, 512), ({MAX_MEGABYTES: "100"}, 100), ({IS_BOUNDED: "false"}, None), ({MAX_MEGABYTES: "{{ odd }}"}, None)],
)
def test_a_target_can_set_the_limit(spark: dict[str, str], expected: int | None) -> None:
    """The settings of a target take precedence."""
    target = Target(name="local", storage="store", spark=spark, location=Location("project.yml"))

    assert rocksdb_bytes(target) == (None if expected is None else expected * 1024**2)


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
