"""The state of a query grows for ever just where `unbounded-state` says so."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlstream import ProjectRequest, compile_models
from sqlstream.compiler.compiled import CompiledModel

HOURS = 6
FILES = {
    "project.yml": "name: shop\n",
    "sinks.yml": "sinks: [{name: out, format: noop}]\n",
    "sources.yml": """sources:
  - name: shop
    tables: [{name: orders, format: json, path: in, schema: 'id int, ts timestamp', options: {maxFilesPerTrigger: 1}}]
""",
}
ORDERS = "{{ source('shop', 'orders') }}"
MARKED = f"{ORDERS} watermark ts delay of interval 1 minute"
JOIN = f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id"


@pytest.mark.parametrize(
    ("mode", "sql", "kept"),
    [
        ("update", f"select id, count(*) as n from {ORDERS} group by id", HOURS),
        ("update", f"select distinct id from {ORDERS}", HOURS),
        ("update", f"select id, ts, count(*) as n from {MARKED} group by id, ts", 1),
        ("append", JOIN, 2 * HOURS),
        ("append", f"{JOIN} and a.ts >= b.ts - interval 1 minute", HOURS + 1),
        ("append", f"{JOIN} and a.ts between b.ts - interval 1 minute and b.ts", 2),
        ("append", f"{JOIN} and a.ts = b.ts", 2),
    ],
)
def test_state_grows_where_the_rule_says_so(
    spark: SparkSession, tmp_path: Path, mode: str, sql: str, kept: int
) -> None:
    """One row an hour, each of an id of its own: `kept` rows are in the state at the end."""
    config = f"{{{{ config(sink='out', output_mode='{mode}') }}}}\n"
    for name, text in {**FILES, "models/asked.sql": config + sql}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    compiled = compile_models(ProjectRequest(tmp_path))

    rows = rows_in_state(spark, tmp_path, compiled.models[0], mode)

    assert rows == kept
    warned = "unbounded-state" in {finding.code for finding in compiled.findings}
    assert warned is (kept >= HOURS)


def rows_in_state(spark: SparkSession, folder: Path, model: CompiledModel, mode: str) -> int:
    """Returns how many rows all state stores hold when the query has read a file for each hour."""
    (folder / "in").mkdir()
    for hour in range(HOURS):
        file = folder / "in" / f"{hour}.json"
        file.write_text(json.dumps({"id": hour, "ts": f"2024-01-01T0{hour}:30:00"}))
        os.utime(file, (hour, hour))
    reader = spark.readStream.schema("id int, ts timestamp").option("maxFilesPerTrigger", 1)
    for read in model.reads:
        reader.json(str(folder / "in")).createOrReplaceTempView(read.view)
    writer = spark.sql(model.sql).writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None
    return sum(int(operator["numRowsTotal"]) for operator in progress["stateOperators"])
