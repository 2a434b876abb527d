"""Runs a pipeline of Spark with AUTO CDC and prints its tables as JSON, in a Python that has `pyspark[pipelines]`.

Its tables are in the memory of the JVM, so the same program reads them.

Usage: python auto_cdc.py SPEC TABLE...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
from pyspark.sql import SparkSession


def main(spec_path: Path, *tables: str) -> None:
    """Runs the pipeline once, and prints a JSON object of the rows of each table in the last line."""
    spec = load_pipeline_spec(spec_path)
    builder = SparkSession.builder.remote("local[2]")
    for name, value in spec.configuration.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    graph = create_dataflow_graph(spark, spec.catalog, spec.database, spec.configuration)
    register_definitions(spec_path, SparkConnectGraphElementRegistry(spark, graph), spec, spark, graph)
    handle_pipeline_events(
        start_run(spark, graph, full_refresh=[], full_refresh_all=False, refresh=[], dry=False, storage=spec.storage)
    )
    found = {table: [row.asDict(recursive=True) for row in spark.table(table).collect()] for table in tables}
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
