"""The same queries in plain PySpark, without sqlstream.

    plain.py throughput|triggers|tested-flat|tested-cloudtrail DATA OUT [SETTING=VALUE ...]   one query after the other
    plain.py stateless|windowed DATA OUT [SETTING=VALUE ...]           three queries at once

Prints a line of JSON for each query, with the duration of each batch in ms.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import avg, col, count, explode, to_date, to_timestamp, upper, window
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.runs.projects import RULES

EVENTS = "event_time timestamp, device string, kind string, amount double"
SCHEMA = Path(__file__).resolve().parents[2] / "models/cloudtrail/cloudtrail_schema.ddl"
PROGRESS_KEPT = "100000"
TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"


def cloudtrail(spark: SparkSession, data: Path) -> DataFrame:
    """The model cloudtrail_events of the examples."""
    reader = spark.readStream.schema(SCHEMA.read_text()).option("maxFilesPerTrigger", 20)
    logs = reader.json(f"{data}/cloudtrail/*/*.json.gz")
    record = logs.select(explode("Records").alias("record"))
    return record.select(
        col("record.eventID").alias("event_id"),
        to_timestamp("record.eventTime", TIME).alias("event_time"),
        to_date("record.eventTime", TIME).alias("date"),
        col("record.eventSource").alias("event_source"),
        col("record.eventName").alias("event_name"),
        col("record.awsRegion").alias("region"),
        col("record.sourceIPAddress").alias("source_ip"),
        col("record.userAgent").alias("user_agent"),
        col("record.userIdentity.type").alias("user_type"),
        col("record.userIdentity.arn").alias("user_arn"),
        col("record.userIdentity.userName").alias("user_name"),
        (col("record.userIdentity.sessionContext.attributes.mfaAuthenticated") == "true").alias("mfa"),
        col("record.recipientAccountId").alias("account_id"),
        col("record.errorCode").alias("error_code"),
        col("record.errorMessage").alias("error_message"),
        col("record.readOnly").alias("read_only"),
        col("record.requestParameters").alias("request_parameters"),
        col("record.responseElements").alias("response_elements"),
    )


def events(spark: SparkSession, data: Path) -> DataFrame:
    """The rows of the JSON files, one file per batch."""
    return spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(f"{data}/events")


def windows(rows: DataFrame) -> DataFrame:
    """Averages per device and ten minutes."""
    groups = rows.withWatermark("event_time", "10 minutes").groupBy(window("event_time", "10 minutes"), "device")
    averages = groups.agg(avg("amount").alias("average"), count("*").alias("events"))
    return averages.select(col("window.start").alias("since"), "device", "average", "events")


def flat(rows: DataFrame) -> DataFrame:
    """A stateless query."""
    return rows.where("amount > 1").select("event_time", "device", upper("kind").alias("kind"), "amount")


def start(frame: DataFrame, name: str, out: Path, partition: Sequence[str] = ()) -> StreamingQuery:
    """Starts a query that writes Parquet and ends when it has read all rows."""
    writer = frame.writeStream.format("parquet").option("path", f"{out}/{name}").partitionBy(*partition)
    return writer.option("checkpointLocation", f"{out}/checkpoints/{name}").trigger(availableNow=True).start()


def start_tested(rows: DataFrame, name: str, out: Path) -> StreamingQuery:
    """Starts a query that writes the rows of each batch that meet all rules of `name`, and then the others."""
    good = f"coalesce({' and '.join(RULES[name])}, true)"

    def write(batch: DataFrame, _: int) -> None:
        batch.where(good).write.mode("append").parquet(f"{out}/{name}")
        batch.where(f"not {good}").write.mode("append").parquet(f"{out}/quarantine")

    writer = rows.writeStream.option("checkpointLocation", f"{out}/checkpoints/{name}").trigger(availableNow=True)
    return writer.foreachBatch(write).start()


def print_batches(name: str, query: StreamingQuery) -> None:
    """Waits for the end of a query and prints the duration of its batches."""
    query.awaitTermination()
    batches = [progress.durationMs["triggerExecution"] for progress in query.recentProgress]
    sys.stdout.write(json.dumps({"query": name, "batches_ms": batches}) + "\n")


def main(what: str, data: Path, out: Path, given: Sequence[str]) -> None:
    """Runs the queries of the part `what`."""
    builder = SparkSession.builder.appName("plain")
    for name, _, value in (setting.partition("=") for setting in given):
        builder = builder.config(name, value)
    tested = what.removeprefix("tested-") if what.startswith("tested-") else None
    if what in ("throughput", "triggers") or tested:
        builder = builder.config("spark.sql.streaming.numRecentProgressUpdates", PROGRESS_KEPT)
    spark = builder.getOrCreate()
    if what == "throughput":
        print_batches("cloudtrail", start(cloudtrail(spark, data), "cloudtrail", out, ["date"]))
        print_batches("windows", start(windows(events(spark, data)), "windows", out))
    elif what == "triggers":
        print_batches("flat", start(flat(events(spark, data)), "flat", out))
    elif tested:
        rows = cloudtrail(spark, data) if tested == "cloudtrail" else flat(events(spark, data))
        print_batches(tested, start_tested(rows, tested, out))
    else:
        rows = events(spark, data)
        last = windows(rows) if what == "windowed" else rows.select("event_time", (col("amount") * 2).alias("twice"))
        frames = {"first": flat(rows), "second": rows.where("kind = 'buy'"), "third": last}
        queries = {name: start(frame, name, out) for name, frame in frames.items()}
        for name, query in queries.items():
            print_batches(name, query)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
