"""The queries of `bench_connectors.py` in plain PySpark, as most people write them. Prints the duration of each batch.

Usage: by_hand.py CASE OUT SETTINGS INPUT, where SETTINGS and INPUT are JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

SCHEMA = "id bigint, kind string, amount int, price double, at timestamp"
MERGE = (
    "insert into events select * from events_staging on conflict (id) do update set "
    "kind = excluded.kind, amount = excluded.amount, price = excluded.price, at = excluded.at"
)


def main() -> None:
    """Runs one case."""
    case, out, settings, given = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
    builder = SparkSession.builder.appName(case)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    value = from_json(col("value").cast("string"), SCHEMA)
    rows = spark.readStream.format("kafka").options(**given["kafka"]).load().select(value.alias("row")).select("row.*")
    writer = rows.writeStream.option("checkpointLocation", f"{out}/checkpoint").trigger(availableNow=True)
    if case == "parquet":
        query = writer.format("parquet").option("path", f"{out}/events").start()
    else:
        query = writer.foreachBatch(lambda batch, _: upsert(batch, given["jdbc"])).start()
    query.awaitTermination()
    batches = [progress.durationMs["triggerExecution"] for progress in query.recentProgress]
    sys.stdout.write(json.dumps({"query": "events", "batches_ms": batches}) + "\n")


def upsert(batch: DataFrame, options: dict[str, str]) -> None:
    """Writes a batch to a staging table with Spark's JDBC writer, and merges it."""
    batch.write.format("jdbc").options(**options, dbtable="events_staging").mode("overwrite").save()
    jvm: Any = batch.sparkSession._jvm  # noqa: SLF001
    login = f"?user={options['user']}&password={options['password']}"
    connection = jvm.org.postgresql.Driver().connect(options["url"] + login, None)
    connection.createStatement().execute(MERGE)
    connection.close()


if __name__ == "__main__":
    main()
