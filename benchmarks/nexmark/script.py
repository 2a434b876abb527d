"""The queries of `bench_nexmark.py` in plain PySpark: a stream, its watermark, views and `spark.sql`.

    script.py GIVEN

GIVEN is JSON: `settings` of Spark; the `source`, with its `format` and `options`; the `schema` of the events; the path
`side_input`; the `queries`; the folder `out`; the `sink` and its options; the `trigger`. Prints a line of JSON for each
query that ends, with the duration of each batch in ms.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from benchmarks.nexmark.queries import create_views


def main(given: dict[str, Any]) -> None:
    """Runs one query after the other."""
    builder = SparkSession.builder.appName("nexmark")
    for name, value in given["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    create_views(
        lambda: events(spark, given["source"], given["schema"]).withWatermark("date_time", "4 seconds"),
        spark.read.schema("key bigint, value string").parquet(given["side_input"]),
    )
    for query in given["queries"]:
        writer = rows_of(spark.sql(query["sql"]), given["sink"]["format"]).writeStream.outputMode(query["output_mode"])
        writer = writer.option("checkpointLocation", f"{given['out']}/checkpoints/{query['name']}")
        if query["partition_by"]:
            writer = writer.format("parquet").option("path", f"{given['out']}/rows").partitionBy(*query["partition_by"])
        else:
            writer = writer.format(given["sink"]["format"]).options(**given["sink"]["options"])
        running = writer.trigger(**given["trigger"]).start()
        running.awaitTermination()
        batches = [progress.durationMs["triggerExecution"] for progress in running.recentProgress]
        sys.stdout.write(json.dumps({"query": query["name"], "batches_ms": batches}) + "\n")
    spark.stop()


def events(spark: SparkSession, source: dict[str, Any], schema: str) -> DataFrame:
    """Returns the stream of events."""
    reader = spark.readStream.format(source["format"]).options(**source["options"])
    if source["format"] != "kafka":
        return reader.schema(schema).load()
    return reader.load().select(from_json(col("value").cast("string"), schema).alias("row")).select("row.*")


def rows_of(frame: DataFrame, sink: str) -> DataFrame:
    """Returns what the sink takes: for Kafka, a column of JSON."""
    return frame.selectExpr("to_json(struct(*)) as value") if sink == "kafka" else frame


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
