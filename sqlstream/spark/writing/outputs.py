"""Checks with Spark that a sink accepts the rows of a query, before its first batch would fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, expr, lit, raise_error, when
from pyspark.sql.types import StringType

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.rules.contracts import NOT_NULL
from sqlstream.compiler.rules.sinks.columns import column_findings
from sqlstream.compiler.rules.stored import stored_findings
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.formats.formats import format_of
from sqlstream.project.formats.kept_values import VALUE_SETTINGS
from sqlstream.project.types.data_types import DataType, Struct, read_json_schema
from sqlstream.spark.jvm.errors import SEVERAL_EVENT_TIMES, error_finding
from sqlstream.spark.jvm.gateway import (
    SPARK_ERRORS,
    causes_of,
    check_file_schema,
    check_format,
    check_partitions,
    check_streaming,
    check_types,
)
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.plans import check_batch
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.kafka import written_rows
from sqlstream.spark.writing.micro_batches import column_of


@dataclass(frozen=True)
class _Check:
    """A check by Spark, and the parts of its finding."""

    code: str
    what: str
    fix: str
    location: Location
    run: Callable[[], object]


_CODES = {
    "Stream-stream join without equality predicate": "join-without-key",
    "should not take Cross as the JoinType": "join-without-key",
    "Redefining watermark is disallowed": "second-watermark",
    **dict.fromkeys(SEVERAL_EVENT_TIMES, "several-event-times"),
    "STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY": "type-mismatch",
}
"""The codes of the compiler's rules for what Spark's planner refuses, by its condition or a part of its message."""


def check_output(model: CompiledModel, output: Output, frame: DataFrame, secrets: Secrets) -> None:
    """Checks the sink and the output mode of `model`, whose rows are `frame`, with Spark. Raises: FindingsError."""
    _check_declared(model, frame)
    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    findings = column_findings(model, output, frame.columns, exact=exact)
    settings = {name: str(frame.sparkSession.conf.get(name)) for name in VALUE_SETTINGS}
    findings += stored_findings(model, output, _columns(frame), settings)
    for check in _checks(model, output, frame):
        try:
            call_internal(frame.sparkSession, f"check of {check.code}", check.run, _leave_to_spark)
        except SPARK_ERRORS as error:
            cause = causes_of(error)[0]
            # many refusals have only a condition such as _LEGACY_ERROR_TEMP_3102, so their message decides
            codes = (code for words, code in _CODES.items() if words == cause.condition or words in cause.words)
            code = next(codes, check.code)
            place = Place(check.location)
            findings.append(
                error_finding(error, code=code, what=check.what, place=place, secrets=secrets, fix=check.fix)
            )
    if findings:
        raise FindingsError(findings)


def checked_rows(model: CompiledModel, output: Output, frame: DataFrame) -> DataFrame:
    """Returns the same rows, for a query that fails at a row which its output must not have: one that a constraint of
    the model refuses, or, in a stored model, a partition value that its readers would get as null: empty text, and
    Hive's name for null.
    """
    for field in frame.schema if model.constraints else ():
        refusals = list(_refusals(model, field.name, is_first=field.name == frame.columns[0]))
        if refusals:
            value = column_of(field.name)
            for refused, text in refusals:
                value = when(refused, raise_error(lit(text))).otherwise(value)
            # the metadata of an event time has its watermark
            frame = frame.withColumn(field.name, value.alias(field.name, metadata=field.metadata))
    names = {name.lower() for name in output.partition_by} if model.config.is_stored else set()
    if not format_of(output.format).names_folders:
        return frame
    for field in frame.schema:
        if field.name.lower() in names and isinstance(field.dataType, StringType):
            # Spark gives empty text and null the same folder
            value = column_of(field.name)
            problem = lit(
                f"partition_by of {model.name} cannot keep an empty text in `{field.name}`: readers would get null. "
                f"Use nullif(`{field.name}`, '') in the model, or do not partition by it."
            )
            lost = value.isin("", _HIVE_NULL)
            frame = frame.withColumn(field.name, when(lost, raise_error(problem).cast("string")).otherwise(value))
    return frame


def _refusals(model: CompiledModel, column: str, *, is_first: bool) -> Iterator[tuple[Column, str]]:
    """Yields the conditions under which a row breaks a constraint, and what to report: those about nulls of a column,
    and with the first column of the model those of `check`. A row that deletes another one has only its key.
    """
    config, name = model.config, model.file.rows_of or model.name
    kept = lit(True) if config.delete_when is None else ~coalesce(expr(config.delete_when), lit(False))
    for constraint in model.constraints:
        if constraint.type in NOT_NULL and column.lower() in {each.lower() for each in constraint.columns}:
            text = f"the contract of {name} allows no null in `{column}` ({constraint.type}, {constraint.location})"
            yield column_of(column).isNull() & kept, text
        elif constraint.type == "check" and is_first:
            called = f" {constraint.name}" if constraint.name else ""
            text = (
                f"a row breaks the check constraint{called} of {name}: {constraint.expression} ({constraint.location})"
            )
            yield ~coalesce(expr(constraint.expression or ""), lit(True)) & kept, text


_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder for null."""


def _columns(frame: DataFrame) -> list[tuple[str, DataType]]:
    found = read_json_schema(frame.schema.json())
    return [(field.name, field.type) for field in found.fields] if isinstance(found, Struct) else []


def _leave_to_spark() -> None:
    """Does nothing: Spark refuses the query when it starts, or in its first batch."""


def _check_declared(model: CompiledModel, frame: DataFrame) -> None:
    """Raises: FindingsError if the rows come from an undeclared stream, which has no name and was not checked."""
    if frame.isStreaming and not model.streaming:
        problem = Finding(
            "undeclared-stream",
            f"`{model.name}` reads a stream that is not a source of the project",
            "its checkpoint would identify the stream only by its position, and no stream rule has checked it",
            "declare the stream in sources.yml, and read it with source()",
            model.file.location,
        )
        raise FindingsError([problem])


def _checks(model: CompiledModel, output: Output, frame: DataFrame) -> Iterator[_Check]:
    yield _Check(
        "unknown-format",
        f"sink `{output.sink}` has the format `{output.format}`, which Spark does not have",
        "fix the format of the sink, or add its package to packages: of the target",
        output.location,
        lambda: _check_format(output, frame),
    )
    if model.streaming:
        yield _Check(
            "output-mode",
            f"Spark cannot stream `{model.name}` in {model.config.output_mode} mode",
            "use another output_mode, or a watermark: /*+ WATERMARK(column, '10 minutes') */ on the event time",
            model.location_of("output_mode"),
            lambda: _check_stream(model, frame),
        )
    yield _Check(
        "partition-column",
        f"sink `{output.sink}` cannot partition by the columns of `{model.name}`",
        "partition by columns with a simple type, such as string or date",
        model.location_of("partition_by"),
        lambda: _check_partitions(output, frame),
    )
    if model.streaming:
        yield _Check(
            "sink-schema",
            f"`{model.name}` has a column type that a query cannot return",
            "cast the column, or remove it",
            model.location_of("sink"),
            lambda: check_types(frame),
        )
    yield _Check(
        "sink-schema",
        f"sink `{output.sink}` cannot write the columns of `{model.name}`",
        f"cast or remove the column, or use a sink that is not {output.format}",
        model.location_of("sink"),
        lambda: _check_columns(model, output, frame),
    )
    condition = model.config.delete_when
    if condition:
        yield _Check(
            "invalid-value",
            f"`{model.name}` has a delete_when that Spark cannot evaluate",
            "use a condition on the columns of the model, such as delete_when=\"operation = 'delete'\"",
            model.location_of("delete_when"),
            lambda: frame.where(condition),  # resolves the condition, and reads nothing
        )
    for constraint in model.constraints:
        if constraint.type == "check":
            yield _Check(
                "contract",
                f"`{model.name}` has a check constraint that Spark cannot evaluate",
                "use a condition on the columns of the model, such as `amount >= 0`",
                constraint.location,
                partial(frame.where, constraint.expression or ""),
            )


def _check_stream(model: CompiledModel, frame: DataFrame) -> None:
    check_streaming(frame, model.config.output_mode)
    if model.config.trigger.facts.has_micro_batches:
        check_batch(frame, model.config.output_mode)


def _check_columns(model: CompiledModel, output: Output, frame: DataFrame) -> None:
    written_rows(model, output, frame)
    # values of partition columns are names of folders, so the format need not store their types
    check_file_schema(frame.sparkSession, output.format, frame.drop(*output.partition_by))


def _check_format(output: Output, frame: DataFrame) -> None:
    if format_of(output.format).is_data_source:
        check_format(frame.sparkSession, output.format)


def _check_partitions(output: Output, frame: DataFrame) -> None:
    """Checks only types: `column_findings` has checked that the columns exist, and that others remain."""
    known = {name.lower() for name in frame.columns}
    partitions = [name for name in output.partition_by if name.lower() in known]
    if partitions and len(partitions) < len(frame.columns):
        check_partitions(frame, partitions)
