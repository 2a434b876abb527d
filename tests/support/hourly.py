"""A small project with one model over hourly orders, compiled and run in a given output mode."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream import ProjectRequest, compile_models
from sqlstream.compiler.compiled import CompiledModel

ORDERS = "{{ source('shop', 'orders') }}"
MARKED = f"{ORDERS} watermark ts delay of interval 1 minute"
"""The orders with a watermark."""

FILES = {
    "project.yml": "name: shop\n",
    "sinks.yml": "sinks: [{name: out, format: noop}]\n",
    "sources.yml": """sources:
  - name: shop
    tables: [{name: orders, format: json, path: in, schema: 'id int, ts timestamp', options: {maxFilesPerTrigger: 1}}]
""",
}


@dataclass(frozen=True)
class Compiled:
    """The requested model, and the codes of its findings."""

    model: CompiledModel
    codes: frozenset[str]


def compile_orders(folder: Path, mode: str, sql: str) -> Compiled:
    """Compiles the model that streams `sql` in output mode `mode`."""
    config = f"{{{{ config(sink='out', output_mode='{mode}') }}}}\n"
    for name, text in {**FILES, "models/asked.sql": config + sql}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    compiled = compile_models(ProjectRequest(folder))
    return Compiled(compiled.models[0], frozenset(finding.code for finding in compiled.findings))


def run_orders(spark: SparkSession, folder: Path, model: CompiledModel, times: list[str], table: str) -> StreamingQuery:
    """Runs the query over one order per file and batch into the memory table; ids start at 0, event times are given."""
    (folder / "in").mkdir()
    for number, time in enumerate(times):
        file = folder / "in" / f"{number}.json"
        file.write_text(json.dumps({"id": number, "ts": time}))
        os.utime(file, (number, number))
    reader = spark.readStream.schema("id int, ts timestamp").option("maxFilesPerTrigger", 1)
    for read in model.reads:
        reader.json(str(folder / "in")).createOrReplaceTempView(read.view)
    writer = spark.sql(model.sql).writeStream.format("memory").queryName(table)
    writer = writer.outputMode(model.config.output_mode).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.awaitTermination()
    return query
