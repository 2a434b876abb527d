"""Spark's messages about common mistakes, shortened, with a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import concat, expr, lit

from sqlstream.location import Location
from sqlstream.spark.jvm.errors import OTHER_RUN_MESSAGES, SparkError, host_fix, package_fix, read_error
from sqlstream.spark.jvm.gateway import Cause, causes_of, check_streaming, failure_of
from sqlstream.spark.queries.failures import fails_again
from sqlstream.spark.reading.corrupt_errors import CORRUPT_MESSAGE, read_corrupt_record
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.state_files import state_finding


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
    fix = package_fix([Cause("", "", f"{name.upper()}_DATA_SOURCE_NOT_ENABLED")])

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


@pytest.mark.parametrize(
    ("condition", "parameters"),
    [
        ("CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT", {"providerClass": "HDFSStateStore"}),
        ("CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", {}),
        ("STREAMING_CHECKPOINT_LOG_WRITE_FAILURE.COMMIT_LOG", {"batchId": "1", "checkpointLocation": "file:/c"}),
        ("TASK_WRITE_FAILED", {"path": "file:/a"}),
        ("FAILED_READ_FILE.NO_HINT", {"path": "file:/a.json.gz"}),
        ("DATA_SOURCE_EXTERNAL_ERROR", {}),
    ],
)
def test_the_reason_of_a_failed_file_or_store(spark: SparkSession, condition: str, parameters: dict[str, str]) -> None:
    """The innermost cause is named if Spark's own message leaves it out."""
    jvm: Any = spark._jvm
    inner = jvm.java.io.IOException("No space left on device")
    values = jvm.PythonUtils.toScalaMap(parameters)
    error = RuntimeError()
    error.java_exception = jvm.org.apache.spark.SparkException(condition, values, inner)  # type: ignore[attr-defined]

    read = read_error(error)

    assert read.condition == condition
    assert read.message.endswith(", caused by No space left on device")
    assert ("file:/a.json.gz" in (read.fix or "")) == (condition == "FAILED_READ_FILE.NO_HINT")


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ('No FileSystem for scheme "foo"', "foo://"),
        ("java.lang.NoClassDefFoundError: software/amazon/awssdk/core/X", "software.amazon.awssdk.core.X"),
        ("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "hadoop-aws"),
    ],
)
def test_the_package_of_a_missing_class(message: str, part: str) -> None:
    """The fix names the scheme, the class or the package."""
    assert part in (package_fix([Cause("java.lang.RuntimeException", message)]) or "")


CONSTANTS = (
    f"{CORRUPT_MESSAGE}\nshop.orders\norders\n0\n7\nthe value is null",
    'sqlstream cannot read a message: {"source": "a", "topic": "t", "partition": 0, "offset": 1, "reason": "r"}',
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file f. \n",
    "[MALFORMED_RECORD_IN_PARSING.X] Malformed records are detected in record parsing: [null].\nParse Mode: FAILFAST",
    "[KAFKA_DATA_LOSS] not available in Kafka any more",
    "[CANNOT_LOAD_STATE_STORE.X] file:/a/state/0/0/1.delta does not exist",
    "\nsqlstream.spark.writing.databases.database.RefusedRowsError: refused",
    "java.net.ConnectException: Connection refused",
    "java.net.UnknownHostException: nowhere",
    'No FileSystem for scheme "s3"',
    "ClassNotFoundException: org.apache.hadoop.fs.s3a.S3AFileSystem",
    "java.io.EOFException at org.apache.spark.sql.execution.streaming.state.SchemaHelper",
    "Caused by: java.lang.StackOverflowError",
    "SQLSTATE: 42000",
    "Sorting is not supported",
    *OTHER_RUN_MESSAGES,
)
"""Texts that sqlstream looks for in errors, as constants of the user's SQL, which Spark prints in the plan."""


def failure_over_constants(spark: SparkSession, tmp_path: Path, expression: str) -> Exception:
    """Returns the failure of a stream of numbers that computes `expression`, and compares text with `CONSTANTS`."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    rows = rows.filter(~concat(lit("x"), rows.value.cast("string")).isin([lit(text) for text in CONSTANTS]))
    query = rows.select(expr(expression)).writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException):
        query.awaitTermination()
    found = failure_of(query)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "condition", "is_permanent"),
    [
        ("1 div (value - 2)", "DIVIDE_BY_ZERO", True),
        ("raise_error('no')", "USER_RAISED_EXCEPTION", True),
        ("assert_true(value < 2, 'sqlstream cannot read a message of Kafka: 3')", "USER_RAISED_EXCEPTION", True),
        ("reflect('java.lang.Integer', 'parseInt', concat('x', value))", None, False),
    ],
)
def test_constants_in_a_plan_are_no_causes(
    spark: SparkSession, tmp_path: Path, expression: str, condition: str | None, *, is_permanent: bool
) -> None:
    """A failure is read from its causes, also if the plan that Spark prints with it has constants with other messages."""
    error = failure_over_constants(spark, tmp_path, expression)
    assert all(text.strip().split("\n")[0] in str(error) for text in CONSTANTS)

    read = read_error(error)

    assert (read.condition, read.fix, fails_again(error)) == (condition, None, is_permanent)
    assert (read_corrupt_record(error), host_fix(error)) == (None, None)
    assert state_finding("a", "it", error, str(tmp_path), Location("a.sql"), Secrets({})) is None
    assert [cause.condition for cause in causes_of(error)][:1] == [condition]


def test_a_text_like_that_of_a_corrupt_message_is_the_users(spark: SparkSession, tmp_path: Path) -> None:
    """A user's own `raise_error` with the start of our text, but without a position, is an ordinary failure."""
    text = f"{CORRUPT_MESSAGE}\\nshop.orders\\norders\\nzero\\none\\nreason"

    assert read_corrupt_record(failure_over_constants(spark, tmp_path, f"raise_error('{text}')")) is None
