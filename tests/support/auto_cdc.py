"""Makes random changes of rows, and the tables that AUTO CDC of Spark's declarative pipelines makes of them, of type 1 and 2.

It runs in a Python that has `pyspark[pipelines]`. AUTO CDC needs a table that supports MERGE, and nothing in the jars of
Spark 4.3 has one, so the tables are in memory, and the same program reads them: `MemoryCatalog.java`.

Usage: python -m tests.support.auto_cdc FILE [COUNT]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
from pyspark.sql import SparkSession

from tests.support.keyed_changes import COLUMNS, keyed_changes

BATCHES = 4
"""AUTO CDC takes many seconds for each batch."""

TABLES = ("last", "versions", "tracked")

SPEC = """\
name: cdc
storage: "file://{folder}/storage"
catalog: memory
database: shop
libraries:
  - glob: {{include: transformations/**}}
configuration:
  spark.sql.catalog.memory: MemoryCatalog
"""

FLOWS = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.temporary_view(name="changes")
def changes():
    return spark.readStream.schema("{columns}").option("maxFilesPerTrigger", 1).json("{folder}/changes")


def flow(target, **more):
    dp.create_streaming_table(target)
    dp.create_auto_cdc_flow(
        target=target, source="changes", keys=["id"], sequence_by="at", apply_as_deletes="op = 'd'", **more
    )


flow("last", stored_as_scd_type=1)
flow("versions", stored_as_scd_type=2, except_column_list=["at", "op"])
flow("tracked", stored_as_scd_type=2, except_column_list=["at", "op"], track_history_column_list=["name"])
"""


def main(path: Path, count: int = 20000) -> None:
    """Writes a JSON object with the changes, and the rows of each table."""
    changes = keyed_changes(13, count, count // 20, BATCHES, times=True).batches
    with TemporaryDirectory() as folder:
        tables = pipeline_tables(Path(folder), changes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"changes": [change for batch in changes for change in batch], "tables": tables}))


def pipeline_tables(folder: Path, batches: tuple[list[dict[str, Any]], ...]) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of the tables that the pipeline makes of some batches of changes."""
    (folder / "changes").mkdir()
    for number, batch in enumerate(batches):
        (folder / f"changes/{number}.json").write_text("".join(json.dumps(change) + "\n" for change in batch))
    (folder / "transformations").mkdir()
    (folder / "transformations/flows.py").write_text(FLOWS.format(columns=COLUMNS, folder=folder))
    spec_path = folder / "spark-pipeline.yml"
    spec_path.write_text(SPEC.format(folder=folder))
    classes, jars = folder / "classes", Path(pyspark.__file__).with_name("jars")
    source = folder / "MemoryCatalog.java"
    shutil.copy(Path(__file__).with_name("MemoryCatalog.java"), source)
    subprocess.run(["javac", "-nowarn", "-d", str(classes), "-cp", f"{jars}/*", str(source)], check=True)
    settings = "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=1"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {classes} {settings} pyspark-shell"
    spec = load_pipeline_spec(spec_path)
    builder = SparkSession.builder.remote("local[2]")
    for name, value in spec.configuration.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    graph = create_dataflow_graph(spark, spec.catalog, spec.database, spec.configuration)
    os.chdir(folder)
    register_definitions(spec_path, SparkConnectGraphElementRegistry(spark, graph), spec, spark, graph)
    handle_pipeline_events(
        start_run(spark, graph, full_refresh=[], full_refresh_all=False, refresh=[], dry=False, storage=spec.storage)
    )
    found = {table: [row.asDict(recursive=True) for row in spark.table(table).collect()] for table in TABLES}
    spark.stop()
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
