"""What findings say about errors of Spark and Java."""

from __future__ import annotations

from sqlstream.spark.spark_errors import read_error


def test_an_error_is_never_without_a_message() -> None:
    """A text that is all stack trace is shortened to its first line, and an empty one becomes the error's class."""
    assert read_error(RuntimeError("at org.apache.Hadoop\n\tat org.apache.Iceberg")).message == "at org.apache.Hadoop"
    assert read_error(RuntimeError("")).message == "RuntimeError"
