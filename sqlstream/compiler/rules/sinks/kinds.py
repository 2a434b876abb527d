"""Rules about what each kind of sink supports: streams or batches, output modes, triggers, partitions.

`tests/spark/test_sink_kinds.py` asks the installed Spark about each of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.sinks.outputs import terminal_models
from sqlstream.compiler.rules.tables import is_of_spark
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.files.python_files import PythonName, find_name
from sqlstream.project.formats.format import BATCHES
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import Target


@rule("unknown-format", "output-mode")
def writable_formats(compiled: CompiledProject) -> Iterator[Finding]:
    """Spark can only read some formats, and cannot stream into others."""
    for sink in compiled.project.sinks:
        if not format_of(sink.format).writes:
            yield Finding(
                "unknown-format",
                f"sink `{sink.name}` has the format `{sink.format}`, which Spark can read but not write",
                "Spark does not start a query that writes to this format",
                "use a format that Spark can write, such as parquet, kafka or table",
                sink.places.get("format", sink.location),
            )
    for model, output in terminal_models(compiled):
        if model.streaming and format_of(output.format).writes == BATCHES:
            yield Finding(
                "output-mode",
                f"`{model.name}` streams into sink `{output.sink}`, but Spark cannot stream into {output.format}",
                f"Spark writes {output.format} only in batches",
                "write each batch with a function: format: python, with for example function: sinks:write for "
                "def write(rows, batch_id)",
                model.place_of("sink"),
            )


@rule("output-mode")
def modes_of_tables(compiled: CompiledProject) -> Iterator[Finding]:
    """A table of Spark's own catalog consists of files, which take append mode only."""
    for model, output in terminal_models(compiled):
        if model.streaming and model.config.output_mode != "append" and is_table_of_files(compiled, output):
            yield Finding(
                "output-mode",
                f"`{model.name}` streams in {model.config.output_mode} mode, which table `{output.table}` does "
                "not support",
                "tables in Spark's own catalog are made of files, which support only append mode",
                "use output_mode='append' (an aggregation then needs a watermark), or a catalog whose tables "
                "support updates, such as Delta Lake or Iceberg",
                model.place_of("output_mode"),
            )


@rule("continuous-trigger", "real-time-trigger")
def triggers_of_sinks(compiled: CompiledProject) -> Iterator[Finding]:
    """Python functions and tables of files receive rows in micro-batches only."""
    for model, output in terminal_models(compiled):
        kind = model.config.trigger.kind if model.streaming else ""
        if kind not in ("continuous", "real_time"):
            continue
        what = _batch_sink(compiled, output, kind)
        if what is not None:
            words = kind.replace("_", "-")
            yield Finding(
                f"{words}-trigger",
                f"`{model.name}` writes to {what} with a {words} trigger",
                "Spark does not allow it: this sink gets its rows in micro-batches",
                "use a micro-batch trigger, such as trigger='1 second'",
                model.place_of("trigger"),
            )


@rule("output-mode", "unknown-key")
def python_sinks(compiled: CompiledProject) -> Iterator[Finding]:
    """A DataSource does not support update mode, and a function receives no options."""
    for model, output in terminal_models(compiled):
        made = python_sink(compiled, output)
        if made is not None and made.is_data_source and model.streaming and model.config.output_mode == "update":
            yield update_mode_of_data_source(model, output)
        elif made is not None and made.is_foreach and output.options:
            yield options_of_function(model, output, _options_place(compiled, model, output))


@rule("unknown-key")
def refused_partitions(compiled: CompiledProject) -> Iterator[Finding]:
    """Spark refuses `partition_by` for a sink without partitions."""
    for model, output in terminal_models(compiled):
        made = python_sink(compiled, output)
        is_function = made is not None and made.is_foreach
        if output.partition_by and (is_function or model.kind in format_of(output.format).refuses_partition_by):
            what = "a function in python/" if is_function else f"the format {output.format}"
            yield Finding(
                "unknown-key",
                f"sink `{output.sink}` partitions the output of `{model.name}` by {', '.join(output.partition_by)}",
                f"Spark does not allow partition_by with {what}, which has no folders",
                "remove partition_by",
                _partition_place(compiled, model, output),
            )


@rule("unused-config", severity=Severity.WARNING)
def ignored_partitions(compiled: CompiledProject) -> Iterator[Finding]:
    """`partition_by` has an effect on files and tables only."""
    for model, output in terminal_models(compiled):
        facts = format_of(output.format)
        is_refused = model.kind in facts.refuses_partition_by
        if output.partition_by and facts.ignores_partition_by and not is_refused:
            yield Finding(
                "unused-config",
                f"sink `{output.sink}` sets partition_by, which has no effect with the format {output.format}",
                "partition_by names the columns whose values become folders, and this format has no folders",
                "remove partition_by",
                _partition_place(compiled, model, output),
                Severity.WARNING,
            )


def python_sink(compiled: CompiledProject, output: Output) -> PythonName | None:
    """Returns what the sink of format `python` names, None where nothing is known of it."""
    if output.python is None:
        return None
    found = find_name(compiled.project.python, output.python, output.location)
    return None if isinstance(found, Finding) else found


def is_table_of_files(compiled: CompiledProject, output: Output) -> bool:
    """Returns whether the output is certainly a table of files, in Spark's own catalog."""
    target = compiled.project.target
    return output.table is not None and not target.packages and is_of_spark(target, output.table) and _has_files(target)


def _has_files(target: Target) -> bool:
    return format_of(str(target.spark.get("spark.sql.sources.default", "parquet")).lower()).writes_files


def update_mode_of_data_source(model: CompiledModel, output: Output) -> Finding:
    """Returns the finding for a DataSource that is to take rows in update mode."""
    return Finding(
        "output-mode",
        f"`{model.name}` streams in update mode, which `{output.python}` does not support",
        "Spark supports only append and complete mode for a DataSource in python/",
        "use output_mode='append' or 'complete', or write with a function of (rows, batch_id)",
        model.place_of("output_mode"),
    )


def options_of_function(model: CompiledModel, output: Output, place: Location) -> Finding:
    """Returns the finding for options that are given to a function."""
    return Finding(
        "unknown-key",
        f"sink `{output.sink}` sets options, which never reach `{output.python}`",
        f"Spark calls the function only with the rows of `{model.name}` and the batch id",
        "put the values into the Python code, or derive a class from DataSource, which receives its options",
        place,
    )


def _batch_sink(compiled: CompiledProject, output: Output, trigger: str) -> str | None:
    """What messages call a sink that needs batches, None where it needs none or nothing is known."""
    if is_table_of_files(compiled, output):
        return f"table `{output.table}`"
    made = python_sink(compiled, output)
    needs_batches = made is not None and (made.is_foreach if trigger == "continuous" else made.is_data_source)
    needs_batches |= made is not None and made.kind == "function"
    return f"`{output.python}`" if needs_batches else None


def _place_of(compiled: CompiledProject, output: Output, key: str) -> Location:
    sink = next(sink for sink in compiled.project.sinks if sink.name == output.sink)
    return sink.places.get(key, sink.location)


def _partition_place(compiled: CompiledProject, model: CompiledModel, output: Output) -> Location:
    return model.place_of("partition_by") if model.config.partition_by else _place_of(compiled, output, "partition_by")


def _options_place(compiled: CompiledProject, model: CompiledModel, output: Output) -> Location:
    return model.place_of("options") if model.config.options else _place_of(compiled, output, "options")
