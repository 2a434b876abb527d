"""What an error of Spark says about the row and the file that made a query fail."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from sqlstream.errors import LONGEST_LINE, Failure
from sqlstream.spark.queries.failed_input import failure_of_input
from sqlstream.spark.reading.corrupt_errors import CORRUPT_MESSAGE
from sqlstream.spark.reading.data_tests import VIOLATED
from sqlstream.spark.secrets import Secrets


def spark_error(condition: str, cause: BaseException | None = None, **parameters: str) -> PySparkException:
    """Returns an error of Spark with a condition."""
    error = PySparkException("the message", errorClass=condition, messageParameters=parameters)
    error.__cause__ = cause
    return error


def found(error: BaseException) -> Failure:
    """Returns what the error says, in batch 3."""
    return failure_of_input(error, 3, Secrets({}))


@pytest.mark.parametrize(
    ("error", "value"),
    [
        (spark_error("CAST_INVALID_INPUT", expression="'abc'", sourceType='"STRING"'), "'abc'"),
        (spark_error("CAST_OVERFLOW", value="300S", sourceType='"SMALLINT"'), "300S"),
        (spark_error("CONVERSION_INVALID_INPUT", str="'é\"'", fmt="'99'"), "'é\"'"),
        (spark_error("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", value="1000", precision="3"), "1000"),
        (spark_error("INVALID_ARRAY_INDEX", indexValue="9", arraySize="2"), "9"),
        (spark_error("DIVIDE_BY_ZERO", config="x"), None),
    ],
)
def test_a_condition_has_the_value(error: Exception, value: str | None) -> None:
    """The value is the parameter of Spark's error condition; a division by zero has none."""
    assert found(error) == Failure(3, value=value)


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (
            """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark.SparkNumberFormat\
Exception: [CAST_INVALID_INPUT] The value 'abc' of the type "STRING" cannot be cast to "INT" because it is malformed.\
 SQLSTATE: 22018\n== SQL (line 1, position 8) ==""",
            Failure(3, value="'abc'"),
        ),
        (
            '[CONVERSION_INVALID_INPUT] The value \'12,x\' ("STRING") cannot be converted to "DECIMAL(3,0)"',
            Failure(3, value="'12,x'"),
        ),
        ("[INVALID_ARRAY_INDEX] The index 9 is out of bounds. The array has 2 elements.", Failure(3, value="9")),
        (
            "[CANNOT_PARSE_TIMESTAMP] Text 'it''s no time' could not be parsed at index 0.",
            Failure(3, value="'it''s no time'"),
        ),
        ('java.lang.NumberFormatException: For input string: "n/a"', Failure(3, value='"n/a"')),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a%20b/it's.1.json. \n",
            Failure(3, file="/in/a b/it's.1.json"),
        ),
        (
            "Caused by: java.lang.RuntimeException: s3a://lake/in/part-0.parquet is not a Parquet file. Expected magic",
            Failure(3, file="s3a://lake/in/part-0.parquet"),
        ),
        (
            "[MALFORMED_RECORD_IN_PARSING.X] Malformed records are detected in record parsing: [1,a,null].\nParse Mode",
            Failure(3, row="[1,a,null]"),
        ),
        ("no space left on device", Failure(3)),
    ],
)
def test_a_message_without_parameters_is_read(message: str, failure: Failure) -> None:
    """Of an exception that arrives only as text, the value, the file and the row are in its message."""
    assert found(RuntimeError(message)) == failure


def test_the_file_and_the_row_are_in_different_causes() -> None:
    """One cause names the file, another one the row, and the innermost the value."""
    row = spark_error(
        "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION", ValueError('For input string: "many"'), badRecord="[2,null]"
    )
    error = spark_error("FAILED_READ_FILE.NO_HINT", row, path="file:///in/caf%C3%A9.csv")

    assert found(error) == Failure(3, file="/in/café.csv", row="[2,null]", value='"many"')


def test_a_message_of_kafka_has_its_position() -> None:
    """A message that does not have the declared format is named by topic, partition and offset."""
    text = f"{CORRUPT_MESSAGE}\nshop.orders\norders\n1\n7\nit is not JSON"

    failure = found(spark_error("USER_RAISED_EXCEPTION", errorMessage=text))

    assert failure == Failure(3, position="topic orders, partition 1, offset 7")


def test_a_row_that_violates_a_data_test_is_the_row() -> None:
    """The row is what the data test has reported."""
    text = f'{VIOLATED}\norders\nnot_null_id\nmodels/a.yml\n3\n7\n{{"id": null}}'

    assert found(spark_error("USER_RAISED_EXCEPTION", errorMessage=text)) == Failure(3, row='{"id": null}')


def test_what_is_shown_is_one_line_without_secrets() -> None:
    """A row has no line ends and is cut, and a secret in it is removed."""
    row = f"[hunter22,\n{'x' * 2 * LONGEST_LINE}]"
    error = spark_error("MALFORMED_RECORD_IN_PARSING.X", badRecord=row)

    shown = failure_of_input(error, None, Secrets({"SQLSTREAM_SECRET_PASSWORD": "hunter22"})).row

    assert shown is not None
    assert len(shown) == LONGEST_LINE + 1
    assert "hunter22" not in shown
    assert "\n" not in shown


def test_a_long_or_odd_message_hides_nothing() -> None:
    """A message with a long value is searched in its first part; an address that cannot be read leaves only the batch."""
    long = PySparkException(f'For input string: "{"a" * 1_000_000}"')
    assert found(long).batch == 3
    assert found(spark_error("FAILED_READ_FILE.NO_HINT", path="s3a://[x/y")).batch == 3
