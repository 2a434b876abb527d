"""Rules about what each kind of sink supports: streams or batches, output modes, triggers, partitions, shared queries,
quarantines, the rows of metrics and alerts.

`tests/spark/test_sink_kinds.py` asks the installed Spark about each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rewrite.data_tests import QUARANTINE_COLUMNS
from sqlstream.compiler.rules.formats import is_of_spark
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, rule
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.trigger import TriggerFacts
from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.databases.logins import UnmappedOptionError, read_login
from sqlstream.project.files.paths import join, plain_path
from sqlstream.project.files.python_files import PythonName, find_name
from sqlstream.project.formats.formats import FORMATS, format_of
from sqlstream.project.secret_text import SecretText
from sqlstream.project.wording import quoted_list


@rule("unknown-format")
def writable_formats(compiled: CompiledProject) -> Problems:
    """Spark can only read some formats."""
    return (
        Problem(
            f"sink `{sink.name}` has the format `{sink.format}`, which Spark can read but not write",
            "Spark does not start a query that writes to this format",
            "use a format that Spark can write, such as parquet, kafka or table",
            sink.locations.get("format", sink.location),
        )
        for sink in compiled.project.sinks
        if not format_of(sink.format).writes
    )


@output_rule("output-mode")
def streamable_formats(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Streams go into the databases whose SQL sqlstream knows; Spark cannot stream into any database."""
    url = next((value for name, value in output.options.items() if name.lower() == "url"), None)
    is_unknown = isinstance(url, str) and dialect_of(output.format, output.options) is None
    if model.streaming and output.format == "jdbc" and is_unknown:
        yield Problem(
            f"`{model.name}` streams into sink `{output.sink}`, whose database sqlstream does not know",
            "sqlstream writes streams to PostgreSQL, MariaDB and MySQL, with a URL such as jdbc:postgresql://host/shop",
            "write each batch with a function: format: python, with for example function: sinks:write for "
            "def write(rows, batch)",
            model.location_of("sink"),
        )


@output_rule("output-mode")
def modes_of_tables(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A table of Spark's own catalog consists of files, which take append mode only."""
    mode = model.config.output_mode
    if model.streaming and mode != "append" and _is_table_of_files(compiled, output):
        yield Problem(
            f"`{model.name}` streams in {mode} mode, which table `{output.table}` does not support",
            "tables in Spark's own catalog are made of files, which support only append mode",
            "use output_mode='append' (an aggregation then needs a watermark), or a catalog whose tables "
            "support updates, such as Delta Lake or Iceberg",
            model.location_of("output_mode"),
        )


@output_rule("continuous-trigger", "real-time-trigger")
def triggers_of_sinks(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Python functions and tables of files receive rows in micro-batches only."""
    facts = model.config.trigger.facts
    what = _batch_sink(compiled, output, facts) if model.streaming and not facts.has_micro_batches else None
    if what is not None:
        yield Finding(
            facts.code,
            f"`{model.name}` writes to {what} with a {facts.words} trigger",
            "Spark does not allow it: this sink gets its rows in micro-batches",
            "use a micro-batch trigger, such as trigger='1 second'",
            model.location_of("trigger"),
        )


@output_rule("output-mode")
def modes_of_data_sources(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A DataSource does not support update mode."""
    made = python_sink(compiled, output)
    if made is not None and made.is_data_source and model.streaming and model.config.output_mode == "update":
        yield Problem(
            f"`{model.name}` streams in update mode, which `{output.python}` does not support",
            "Spark supports only append and complete mode for a DataSource in python/",
            "use output_mode='append' or 'complete', or write with a function of (rows, batch)",
            model.location_of("output_mode"),
        )


@output_rule("unknown-key")
def options_of_functions(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A Python class that processes rows one by one receives no options."""
    made = python_sink(compiled, output)
    if made is not None and made.is_foreach and made.kind == "class" and output.options:
        yield Problem(
            f"sink `{output.sink}` sets options, which never reach `{output.python}`",
            f"Spark passes each row of `{model.name}` to an object of this class, and nothing else",
            "write with a function of (rows, batch), whose batch has the options; or derive a class from DataSource",
            _location_of(compiled, model, output, "options"),
        )


@output_rule("unknown-key")
def refused_partitions(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Spark refuses `partition_by` for a sink without partitions."""
    made = python_sink(compiled, output)
    is_function = made is not None and made.is_foreach
    if output.partition_by and (is_function or model.kind in format_of(output.format).refuses_partition_by):
        what = "a function in python/" if is_function else f"the format {output.format}"
        yield Problem(
            f"sink `{output.sink}` partitions the output of `{model.name}` by {', '.join(output.partition_by)}",
            f"Spark does not allow partition_by with {what}, which has no folders",
            "remove partition_by",
            _location_of(compiled, model, output, "partition_by"),
        )


@output_rule("unused-config", severity=Severity.WARNING)
def ignored_partitions(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """`partition_by` has an effect on files and tables only."""
    facts = format_of(output.format)
    if output.partition_by and facts.ignores_partition_by and model.kind not in facts.refuses_partition_by:
        yield Problem(
            f"sink `{output.sink}` sets partition_by, which has no effect with the format {output.format}",
            "partition_by names the columns whose values become folders, and this format has no folders",
            "remove partition_by",
            _location_of(compiled, model, output, "partition_by"),
        )


@output_rule("unused-config", severity=Severity.WARNING)
def ignored_files_per_batch(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """`files_per_batch` has an effect on files, and on tables to which rows are added."""
    facts = format_of(output.format)
    if output.files_per_batch is None or _is_table_of_files(compiled, output):
        return
    if facts.is_table and model.streaming and model.config.merges_rows:
        why = f"`{model.name}` has a unique_key, and MERGE decides how many files it writes"
    elif facts.writes_files or facts.is_table or output.table is not None:
        return
    else:
        why = "this format has no files"
    yield Problem(
        f"sink `{output.sink}` sets files_per_batch, which has no effect with the format {output.format}",
        why,
        "remove files_per_batch",
        next(sink for sink in compiled.project.sinks if sink.name == output.sink).locations.get(
            "files_per_batch", output.location
        ),
    )


def python_sink(compiled: CompiledProject, output: Output) -> PythonName | None:
    """Returns the definition that a sink of format `python` names; None if there is none."""
    if output.python is None:
        return None
    found = find_name(compiled.project.python, output.python, output.location)
    return None if isinstance(found, Finding) else found


def _is_table_of_files(compiled: CompiledProject, output: Output) -> bool:
    """Returns whether the output is certainly a table of files, in Spark's own catalog."""
    target = compiled.project.target
    default_format = str(target.spark.get("spark.sql.sources.default", "parquet")).lower()
    is_named = output.table is not None and not format_of(output.format).is_table
    is_spark_table = is_named and not target.packages and is_of_spark(target, output.table or "")
    return is_spark_table and format_of(default_format).writes_files


def _batch_sink(compiled: CompiledProject, output: Output, trigger: TriggerFacts) -> str | None:
    """Returns the name for messages of a sink that certainly needs batches; None for other sinks."""
    if _is_table_of_files(compiled, output):
        return f"table `{output.table}`"
    made = python_sink(compiled, output)
    if made is None:
        return None
    needs_batches = made.is_foreach if trigger.has_epochs else made.is_data_source
    return f"`{output.python}`" if needs_batches or made.kind == "function" else None


def _location_of(compiled: CompiledProject, model: CompiledModel, output: Output, key: str) -> Location:
    """Returns the location of `key`, which the model or its sink sets."""
    if getattr(model.config, key):
        return model.location_of(key)
    sink = next(sink for sink in compiled.project.sinks if sink.name == output.sink)
    return sink.locations.get(key, sink.location)


def _separate_sink(compiled: CompiledProject, output: Output) -> str | None:
    """Returns a sink to which only a streaming query of Spark itself can write, for messages; None for others."""
    made = python_sink(compiled, output)
    if made is not None and made.kind == "class":
        return f"the class `{output.python}`"
    return f"a sink of format {output.format}" if format_of(output.format).needs_separate_query else None


def _unshared_sink(compiled: CompiledProject, output: Output) -> str | None:
    """Returns a sink that needs a separate query, for messages; None for others. A format that sqlstream does not know
    may write only streams.
    """
    unknown = None if output.format in FORMATS else f"a sink of format {output.format}"
    return _separate_sink(compiled, output) or unknown


SEPARATE = "use fan_out='separate', which runs a query for each sink"


@output_rule("fan-out")
def unshared_sinks(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Some sinks need a separate query."""
    if not model.also or not model.streaming:
        return
    what = _unshared_sink(compiled, output)
    if what is not None:
        yield Problem(
            f"`{model.name}` cannot write to sink `{output.sink}` from a shared query",
            f"{what} gets its rows from Spark, which writes to one sink in each query",
            f"{SEPARATE}; or remove `{output.sink}` from the sinks of the model",
            model.location_of("sink"),
        )


@rule("fan-out")
def shared_batch_models(compiled: CompiledProject) -> Problems:
    """A batch model has no micro-batches to share."""
    return [
        Problem(
            f"`{model.name}` sets fan_out: shared, but it is a batch model",
            "only a stream has micro-batches that one query can write to several sinks",
            SEPARATE,
            model.location_of("fan_out"),
        )
        for model in compiled.models.values()
        if model.also and not model.streaming
    ]


@rule("continuous-trigger", "real-time-trigger")
def shared_triggers(compiled: CompiledProject) -> Problems:
    """A shared query needs micro-batches."""
    for model in compiled.models.values():
        facts = model.config.trigger.facts
        if model.also and model.streaming and not facts.has_micro_batches:
            yield Finding(
                facts.code,
                f"`{model.name}` writes to several sinks from a shared query with a {facts.words} trigger",
                "the query writes each micro-batch to all sinks, and this trigger has no micro-batches",
                f"use a micro-batch trigger, such as trigger='1 second'; or {SEPARATE}",
                model.location_of("trigger"),
            )


_OTHERWISE = "use on_violation: drop or fail"

_NO_LATE_ROWS = "remove late_rows"


@rule("quarantine")
def misplaced_quarantines(compiled: CompiledProject) -> Problems:
    """Only a query of micro-batches can write rows to a quarantine."""
    for model in compiled.models.values():
        if model.keeps_late_rows:
            problem = _misplaced_quarantine(model, _NO_LATE_ROWS)
            if model.output is not None and not model.streaming:
                problem = f"`{model.name}` is a batch model, which has no watermark", _NO_LATE_ROWS
            if problem is None:
                yield from _unfit_quarantine(compiled, model, compiled.late_rows.get(model.unique_id), _NO_LATE_ROWS)
            else:
                yield Problem(f"`{model.name}` cannot keep its late rows", *problem, model.location_of("late_rows"))
        problem = _misplaced_quarantine(model, _OTHERWISE) if model.quarantine_tests else None
        if problem is not None:
            why, fix = problem
            for test in model.quarantine_tests:
                message = f"the data test `{test.name}` of `{model.name}` cannot quarantine rows"
                yield Problem(message, why, fix, test.location)
        elif model.quarantine_tests:
            yield from _unfit_quarantine(compiled, model, compiled.quarantines.get(model.unique_id), _OTHERWISE)


def _misplaced_quarantine(model: CompiledModel, otherwise: str) -> tuple[str, str] | None:
    """Returns why the query of a model cannot write to a quarantine, and what to do instead, such as `otherwise`."""
    if model.file.tests is not None:
        why = f"many queries can read source `{model.file.tests}`, and each would write its rows"
        return why, f"{otherwise}; or move the test to a model with a sink, whose query writes them once"
    if model.output is None:
        why = f"`{model.name}` is a view, so no query writes its rows to a sink"
        return why, f"{otherwise}; or give the model a sink, and read its rows with materialized='stored'"
    if not model.streaming:
        why = f"`{model.name}` is a batch model: it has no checkpoint, which makes the rows of two sinks one step"
        return why, f"{otherwise}; and a second batch model can select the other rows"
    if model.config.output_mode == "complete":
        why = "in complete mode each batch has all rows again, also those that are in the quarantine already"
        return why, f"{otherwise}, or output_mode='update'"
    facts = model.config.trigger.facts
    if not facts.has_micro_batches:
        why = f"the query has a {facts.words} trigger, which has no micro-batches to write to two sinks"
        return why, f"{otherwise}, or a micro-batch trigger such as trigger='1 second'"
    if model.config.quarantine_sink is None:
        why = f"`{model.name}` has no quarantine_sink for these rows"
        return why, "set quarantine_sink to one of the sinks in sinks.yml, in the model's config or in project.yml"
    return None


def _unfit_quarantine(
    compiled: CompiledProject, model: CompiledModel, quarantine: CompiledModel | None, otherwise: str
) -> Iterator[Problem]:
    """Yields what is wrong with the sinks of a model and of its `quarantine`, and with its columns."""
    for output in model.outputs:
        needs = _unshared_sink(compiled, output)
        if needs:
            yield Problem(
                f"`{model.name}` has a quarantine, so it cannot write to sink `{output.sink}`",
                f"{needs} gets its rows from Spark, which writes to one sink in each query",
                f"{otherwise}; or use a sink of files, Kafka, a database, Delta Lake or Iceberg",
                model.location_of("sink"),
            )
    for output in quarantine.outputs if quarantine is not None else ():
        needs = _separate_sink(compiled, output)
        if needs:
            yield Problem(
                f"sink `{output.sink}` cannot be the quarantine of `{model.name}`",
                f"{needs} needs a separate query, but the query of the model writes the quarantine",
                "use a sink of files, Kafka, a database, Delta Lake or Iceberg, or a function in python/",
                model.location_of("quarantine_sink"),
            )
    names = {name for name, _ in QUARANTINE_COLUMNS}
    taken = [column.name for column in compiled.columns.get(model.unique_id) or () if column.name.lower() in names]
    if taken:
        yield Problem(
            f"`{model.name}` has columns that a quarantine adds",
            f"a quarantined row also has {quoted_list(sorted(names))}, but the model already has {quoted_list(taken)}",
            "rename the columns of the model",
            model.location_of("quarantine_sink"),
        )


@rule("metrics-sink")
def unfit_metrics_sinks(compiled: CompiledProject) -> Problems:
    """Rows of metrics are added to a sink in small batches, without a query of Spark."""
    yield from _unfit_sinks(compiled, compiled.metrics, "metrics")


@rule("alerts-sink")
def unfit_alerts_sinks(compiled: CompiledProject) -> Problems:
    """Rows of alerts are added to a sink in small batches, without a query of Spark."""
    yield from _unfit_sinks(compiled, compiled.alerts, "alerts")


def _unfit_sinks(compiled: CompiledProject, model: CompiledModel | None, rows: str) -> Problems:
    for output in model.outputs if model is not None else ():
        what = _separate_sink(compiled, output)
        if model is not None and what is not None:
            yield Problem(
                f"{rows} cannot be written to sink `{output.sink}`",
                f"{what} gets its rows from a streaming query of Spark, and {rows} are not one",
                "use a sink of files, Kafka, a database, Delta Lake or Iceberg, or a function in python/",
                model.location_of("sink"),
            )


@output_rule("unsupported-target")
def sinks_over_connect(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Over Spark Connect, no query can need Spark's Java process, or an option that only JDBC drivers have."""
    target = compiled.project.target
    if target.remote is None:
        return
    needed = _needs_java(compiled, model, output)
    if needed is not None:
        what, fix, key = needed
        yield Problem(
            f"`{model.name}` cannot run on target `{target.name}`, because {what}",
            "this needs Spark's Java process, to which Spark Connect has no access",
            f"{fix}; or use a target with a master, such as local[*] or spark://host:7077",
            model.location_of(key),
        )
    quarantine = compiled.quarantines.get(model.unique_id)
    for each in (output, *(quarantine.outputs if quarantine else ())):
        problem = _unfit_database(target.name, model, each)
        if problem is not None:
            yield problem


def _unfit_database(target: str, model: CompiledModel, output: Output) -> Problem | None:
    """Returns why a table of a database cannot be written over Spark Connect, None if it can."""
    what = f"`{model.name}` cannot write to sink `{output.sink}` on target `{target}`"
    if output.format == "sqlite":
        return Problem(
            what,
            "the file would be open on two machines, this one and that of the server, for which SQLite has no locks",
            "use a table of PostgreSQL, MariaDB or MySQL; or a target with a master, such as local[*]",
            model.location_of("sink"),
        )
    dialect = dialect_of(output.format, output.options)
    logins = ("user", "password")
    is_secret = any(
        isinstance(value, SecretText) for name, value in output.options.items() if name.lower() not in logins
    )
    if dialect is None or is_secret:  # the run reads the secret
        return None
    try:
        read_login(dialect, {name: str(value) for name, value in output.options.items()})
    except UnmappedOptionError as error:
        return Problem(
            what,
            f"over Spark Connect, a driver in Python connects to {dialect.title}: {error}",
            error.fix,
            model.location_of("sink"),
        )
    return None


def _needs_java(compiled: CompiledProject, model: CompiledModel, output: Output) -> tuple[str, str, str] | None:
    """Returns what the query of `model` does in Spark's Java process, what to do instead, and the key that asks for it.
    None if the API of Spark Connect suffices.
    """
    quarantine = compiled.quarantines.get(model.unique_id)
    path = join(compiled.project.target.storage, output.path or model.name)
    is_shared = plain_path("/", path).startswith("/")
    adds_files = format_of(output.format).writes_files and model.streaming and not model.writes_snapshots_to(output)
    if adds_files and not is_shared and (model.also or quarantine is not None):
        what = "`fan_out: shared`" if model.also else "its quarantine"
        fix = "give the sink a path in a folder that this machine and the server share"
        return f"with {what}, the files of each batch are added to {path} and listed in a log", fix, "sink"
    if model.keeps_late_rows:
        return "it keeps late rows, which only Spark's plan of a batch shows", _NO_LATE_ROWS, "late_rows"
    return None
