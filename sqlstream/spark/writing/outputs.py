"""Whether a sink can take the rows of a query: Spark's own checks, which would else come only with the first batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.rules.sinks.columns import column_findings
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.gateway import (
    SPARK_ERRORS,
    check_file_schema,
    check_format,
    check_partitions,
    check_streaming,
    check_types,
)
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import at, error_finding


@dataclass(frozen=True)
class _Check:
    """One check by Spark, and what to say where it refuses; `of_streams` says that a batch has nothing of it."""

    code: str
    what: str
    fix: str
    location: Location
    ask: Callable[[], None]
    of_streams: bool = False


def check_output(model: CompiledModel, output: Output, frame: DataFrame, secrets: Secrets) -> None:
    """Has Spark check the sink of `model`, with the rows `frame`, and a stream's output mode. Raises: FindingsError."""
    _check_kind(model, frame)
    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    findings = column_findings(model, output, frame.columns, exact=exact)
    for check in _checks(model, output, frame):
        if check.of_streams and not model.streaming:
            continue
        try:
            call_internal(frame.sparkSession, f"check of {check.code}", check.ask, _leave_to_start)
        except SPARK_ERRORS as error:
            place = at(check.location)
            findings.append(
                error_finding(error, code=check.code, what=check.what, place=place, secrets=secrets, fix=check.fix)
            )
    if findings:
        raise FindingsError(findings)


def _leave_to_start() -> None:
    """Spark refuses the query when it starts, or in its first batch."""


def _check_kind(model: CompiledModel, frame: DataFrame) -> None:
    """Raises: FindingsError where the rows are a stream that nothing declares: it would have no name and no rules."""
    if frame.isStreaming and not model.streaming:
        problem = Finding(
            "undeclared-stream",
            f"`{model.name}` reads a stream that is not a source of the project",
            "its checkpoint would identify the stream only by its position, and no stream rule has checked it",
            "declare the stream in sources.yml, and read it with source()",
            model.file.location,
        )
        raise FindingsError([problem])


def _checks(model: CompiledModel, output: Output, frame: DataFrame) -> tuple[_Check, ...]:
    mode = model.config.output_mode
    return (
        _Check(
            "unknown-format",
            f"sink `{output.sink}` has the format `{output.format}`, which Spark does not have",
            "fix the format of the sink, or add its package to packages: of the target",
            output.location,
            lambda: _check_format(output, frame),
        ),
        _Check(
            "output-mode",
            f"`{model.name}` cannot stream in {mode} mode",
            "use another output_mode, or a watermark: /*+ WATERMARK(column, '10 minutes') */ on the event time",
            model.place_of("output_mode"),
            lambda: check_streaming(frame, mode),
            of_streams=True,
        ),
        _Check(
            "partition-column",
            f"sink `{output.sink}` cannot partition by the columns of `{model.name}`",
            "partition by columns with a simple type, such as string or date",
            model.place_of("partition_by"),
            lambda: _check_partitions(output, frame),
        ),
        _Check(
            "sink-schema",
            f"`{model.name}` has a column type that a query cannot return",
            "cast the column, or remove it",
            model.place_of("sink"),
            lambda: check_types(frame),
            of_streams=True,
        ),
        _Check(
            "sink-schema",
            f"sink `{output.sink}` cannot write the columns of `{model.name}`",
            f"cast or remove the column, or use a sink that is not {output.format}",
            model.place_of("sink"),
            lambda: _check_columns(output, frame),
        ),
    )


def _check_format(output: Output, frame: DataFrame) -> None:
    if format_of(output.format).is_data_source:
        check_format(frame.sparkSession, output.format)


def _check_partitions(output: Output, frame: DataFrame) -> None:
    """Asks about types alone: `column_findings` has found which columns are missing, and whether any is left."""
    known = {name.lower() for name in frame.columns}
    partitions = [name for name in output.partition_by if name.lower() in known]
    if partitions and len(partitions) < len(frame.columns):
        check_partitions(frame, partitions)


def _check_columns(output: Output, frame: DataFrame) -> None:
    written = frame.drop(*output.partition_by)
    check_file_schema(frame.sparkSession, output.format, written)
