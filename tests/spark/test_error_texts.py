"""Spark's messages about common mistakes, shortened, with a fix."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import check_streaming
from sqlstream.spark.jvm.packages import package_fix
from sqlstream.spark.spark_errors import SparkError, fails_again, read_error


def error_of(spark: SparkSession, sql: str, mode: str = "append") -> SparkError:
    """Returns the error message and fix for a query over the stream `ticks`."""
    spark.readStream.format("rate").load().createOrReplaceTempView("ticks")
    with pytest.raises(PySparkException) as raised:
        check_streaming(spark.sql(sql), mode)
    return read_error(raised.value, sql)


def test_a_watermark_on_text_says_how_to_make_a_timestamp(spark: SparkSession) -> None:
    """A watermark on text explains how to make a timestamp, and keeps Spark's condition but not its position."""
    text = "(select cast(timestamp as string) as ts from ticks)"
    error = error_of(spark, f"select * from {text} watermark ts delay of interval 1 minute")

    assert error.condition == "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE"
    assert "to_timestamp(`ts`)" in (error.fix or "")
    assert "pos" not in error.message


def test_a_missing_table_takes_one_sentence(spark: SparkSession) -> None:
    """A missing table takes one sentence, without Spark's advice on schemas and DROP VIEW, which models cannot use."""
    error = error_of(spark, "select * from nothing")

    assert error.message == "The table or view `nothing` cannot be found"
    assert "ref(" in (error.fix or "")


@pytest.mark.parametrize(
    ("sql", "mode", "word"),
    [
        ("select * from ticks order by value", "append", "ORDER BY"),
        ("select * from ticks limit 3", "update", "LIMIT"),
        ("select row_number() over (order by timestamp) as n from ticks", "append", "OVER"),
    ],
)
def test_the_fix_names_an_unsupported_clause(spark: SparkSession, sql: str, mode: str, word: str) -> None:
    """The fix for an operation that streams do not support names the clause."""
    assert word in (error_of(spark, sql, mode).fix or "")


@pytest.mark.parametrize(("name", "package"), [("kafka", "spark-sql-kafka-0-10_2.13"), ("avro", "spark-avro_2.13")])
def test_a_missing_package_of_a_format_is_named(name: str, package: str) -> None:
    """A format that only Python names gets a fix with a version of its connector that Maven Central has."""
    fix = package_fix("", f"{name.upper()}_DATA_SOURCE_NOT_ENABLED")

    assert fix is not None
    assert f"org.apache.spark:{package}:4." in fix


@pytest.mark.parametrize(
    "message",
    [
        "Multiple streaming queries are concurrently using file:/store/queries/orders/v1/checkpoint/offsets",
        "Race while writing batch 2 to the file sink metadata log: another writer already committed this batch",
    ],
)
def test_two_runs_of_a_query_are_recognized(message: str) -> None:
    """Spark's errors about two runs of the same batch lead to the other run, and are not retried."""
    assert "another run" in (read_error(RuntimeError(message)).fix or "")
    assert fails_again(RuntimeError(message))


def test_a_full_disk_is_named_for_state() -> None:
    """A full disk is named when state cannot be written, although Spark mentions it only among the causes."""
    error = RuntimeError(
        "[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files for provider HDFSStateStore. "
        "Cannot perform commit during state checkpoint. SQLSTATE: 58030"
    )
    vars(error)["_stackTrace"] = "\tat x.y\nCaused by: java.io.IOException: No space left on device\n\tat x.z"

    assert read_error(error).message.endswith("during state checkpoint, caused by No space left on device")
