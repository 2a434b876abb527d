"""One terminal model made ready to start: its session, its views, Spark's checks, its identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import count, lit

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.fingerprint import fingerprint
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.spark.jvm import check_file_schema, check_format, check_streaming, is_stateful
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.session import EVOLUTION, FROZEN_SETTINGS, TIME_ZONE, SparkRuntime, child_session
from sqlstream.spark.sources import Readers
from sqlstream.spark.spark_errors import at, error_finding
from sqlstream.spark.views import ViewBuilder
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.progress import ROWS_OUT

UNRESTARTABLE_SINKS = frozenset({"memory"})
UNRESTARTABLE_SOURCES = frozenset({"socket"})
"""Spark cannot start a query over these again on its checkpoint."""


@dataclass(frozen=True)
class PreparedQuery:
    """A terminal model that Spark has analysed and checked: `frame` are its rows, in the query's own session.

    `unrestartable` says why Spark cannot restart it on a checkpoint, None when it can.
    """

    model: CompiledModel
    output: Output
    frame: DataFrame
    identity: QueryIdentity
    unrestartable: str | None


def prepare_query(
    compiled: CompiledProject, model: CompiledModel, runtime: SparkRuntime, secrets: Secrets, ledger: Ledger | None
) -> PreparedQuery:
    """Returns the query of terminal `model`, analysed and checked but not started.

    `ledger` is the one of the checkpoint it would resume on: what Spark froze there is set in the query's session.
    Raises: FindingsError.
    """
    output = model.output
    if output is None:
        raise ValueError(f"{model.name} is not a terminal model")
    frozen = _frozen_settings(model, runtime, ledger)
    session = child_session(runtime, frozen)
    readers = Readers(session, secrets, compiled.project.root)
    views = ViewBuilder(compiled, readers, names_sources=frozen[EVOLUTION] == "true")
    _check_secrets(output, compiled, model, secrets)
    frame = views.build(model)
    _check_output(model, output, frame, secrets)
    settings = {name: str(session.conf.get(name)) for name in (*FROZEN_SETTINGS, TIME_ZONE, EVOLUTION)}
    identity = _identity(compiled, model, output, views, is_stateful(frame), settings)
    observed = frame.observe(ROWS_OUT, count(lit(1)).alias("rows"))
    return PreparedQuery(model, output, observed, identity, unrestartable(compiled, model))


def _frozen_settings(model: CompiledModel, runtime: SparkRuntime, ledger: Ledger | None) -> dict[str, str]:
    if ledger is None:
        return {EVOLUTION: "true" if runtime.names_sources else "false"}
    if ledger.identity.settings.get(EVOLUTION) == "true" and not runtime.names_sources:
        raise FindingsError([_older_spark(model, runtime, ledger)])
    kept = {name: ledger.identity.settings[name] for name in FROZEN_SETTINGS if name in ledger.identity.settings}
    return {EVOLUTION: ledger.identity.settings.get(EVOLUTION, "false"), **kept}


def _older_spark(model: CompiledModel, runtime: SparkRuntime, ledger: Ledger) -> Finding:
    return Finding(
        "unsupported-version",
        f"the checkpoint of `{model.name}` is from Spark {ledger.spark_version}, and this is Spark {runtime.version}",
        "it knows its sources by name, which Spark can since 4.3 only",
        f"install pyspark {ledger.spark_version} again, or start over with --full-refresh {model.name}",
        model.file.location,
    )


def _check_secrets(output: Output, compiled: CompiledProject, model: CompiledModel, secrets: Secrets) -> None:
    missing = secrets.missing(output.options, output.location)
    upstream = compiled.graph.ancestors(model.unique_id)
    for table in compiled.project.sources:
        if f"source.{compiled.project.name}.{table.full_name}" in upstream:
            missing += secrets.missing(table.options, table.places.get("options", table.location))
    if missing:
        raise FindingsError(missing)


def _check_output(model: CompiledModel, output: Output, frame: DataFrame, secrets: Secrets) -> None:
    """Has Spark check the output mode and the sink, as start() and the first batch would."""
    findings = _partition_findings(model, output, frame)
    mode = model.config.output_mode
    mode_fix = "use another output_mode, or a watermark: /*+ WATERMARK(column, '10 minutes') */ on the event time"
    format_fix = "correct the sink's format, or add the package that has it to the target's packages:"
    columns_fix = f"cast or leave out the column, or use a sink that is not {output.format}"
    checks: tuple[tuple[str, str, str, Location, Callable[[], None]], ...] = (
        (
            "unknown-format",
            f"sink `{output.sink}` has the format `{output.format}`, which Spark does not know",
            format_fix,
            output.location,
            lambda: _check_format(output, frame),
        ),
        (
            "output-mode",
            f"`{model.name}` cannot stream in {mode} mode",
            mode_fix,
            model.place_of("output_mode"),
            lambda: check_streaming(frame, mode),
        ),
        (
            "sink-schema",
            f"sink `{output.sink}` cannot take the columns of `{model.name}`",
            columns_fix,
            model.place_of("sink"),
            lambda: _check_columns(output, frame),
        ),
    )
    for code, what, fix, location, check in checks:
        try:
            check()
        except (PySparkException, Py4JJavaError) as error:
            findings.append(error_finding(error, code=code, what=what, place=at(location), secrets=secrets, fix=fix))
    if findings:
        raise FindingsError(findings)


def _check_format(output: Output, frame: DataFrame) -> None:
    if output.format not in UNRESTARTABLE_SINKS:  # the memory sink is part of the writer, and no data source
        check_format(frame.sparkSession, output.format)


def _check_columns(output: Output, frame: DataFrame) -> None:
    written = frame.drop(*output.partition_by)
    check_file_schema(frame.sparkSession, output.format, written)


def _partition_findings(model: CompiledModel, output: Output, frame: DataFrame) -> list[Finding]:
    columns = {column.lower() for column in frame.columns}
    if columns and columns <= {column.lower() for column in output.partition_by}:
        return [_nothing_left(model, output)]
    return [
        Finding(
            "partition-column",
            f"sink `{output.sink}` partitions by `{column}`, which is not a column of `{model.name}`",
            f"`{model.name}` gives {', '.join(frame.columns)}",
            f"add `{column}` to the select list, or change partition_by",
            model.place_of("partition_by"),
        )
        for column in output.partition_by
        if column.lower() not in columns
    ]


def _nothing_left(model: CompiledModel, output: Output) -> Finding:
    return Finding(
        "partition-column",
        f"sink `{output.sink}` partitions by every column of `{model.name}`",
        "the columns of partition_by stand in the names of folders, so no column is left for the files",
        "leave at least one column out of partition_by",
        model.place_of("partition_by"),
    )


def _identity(
    compiled: CompiledProject,
    model: CompiledModel,
    output: Output,
    views: ViewBuilder,
    stateful: bool,
    settings: Mapping[str, str],
) -> QueryIdentity:
    upstream = compiled.graph.ancestors(model.unique_id) | {model.unique_id}
    parts = [compiled.models[node] for node in compiled.graph.order if node in upstream and node in compiled.models]
    return QueryIdentity(
        query=model.query_id,
        model=model.name,
        models={part.name: part.sql for part in parts},
        fingerprints={part.name: fingerprint(part.sql) for part in parts},
        sources=tuple(views.uses),
        sink_format=output.format,
        sink_path=output.path,
        output_mode=model.config.output_mode,
        stateful=stateful,
        settings=settings,
    )


def unrestartable(compiled: CompiledProject, model: CompiledModel) -> str | None:
    """Returns why Spark cannot restart the query of `model` on a checkpoint, None when it can."""
    if model.output is not None and model.output.format in UNRESTARTABLE_SINKS:
        return f"it writes into {model.output.format}"
    upstream = compiled.graph.ancestors(model.unique_id)
    for table in compiled.project.sources:
        if table.format in UNRESTARTABLE_SOURCES and f"source.{compiled.project.name}.{table.full_name}" in upstream:
            return f"`{table.full_name}` reads a {table.format}"
    return None
