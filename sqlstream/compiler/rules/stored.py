"""Rules about stored models: other queries must be able to read what they have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, rule
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.errors import Finding, Severity
from sqlstream.project.formats.formats import format_of
from sqlstream.project.formats.kept_values import FileFacts, changed_partition, changed_value
from sqlstream.project.types.data_types import DataType
from sqlstream.project.wording import quoted_list


@rule("stored-model")
def stored_without_sink(compiled: CompiledProject) -> Problems:
    """A stored model needs a sink."""
    return (
        Problem(
            f"`{model.name}` has materialized: stored but no sink",
            "other models read the rows of a stored model from its sink",
            "add a sink; or remove `materialized`, so that each query that reads it computes it",
            model.location_of("materialized"),
        )
        for model in compiled.models.values()
        if model.config.materialized == "stored" and model.config.sink is None
    )


@output_rule("stored-model")
def unreadable_sinks(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """The sink of a stored model must keep the rows with the columns of the model."""
    facts = format_of(output.format)
    if model.config.is_stored and facts.writes and not facts.keeps_columns:
        yield Problem(
            f"`{model.name}` has materialized: stored, but the rows in sink `{output.sink}` cannot be read back",
            f"sqlstream cannot read the columns of a model from a sink of format {output.format}",
            "use a sink of files such as parquet, or a table; or remove `materialized`",
            model.location_of("materialized"),
        )


@output_rule("stored-model")
def changed_values(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """The sink of a stored model must keep each value of its columns, with their types and the options of the sink."""
    columns = compiled.columns.get(model.unique_id) or ()
    settings = {name: str(value) for name, value in compiled.project.target.spark.items()}
    yield from stored_findings(model, output, [(each.name, each.type) for each in columns], settings)


def stored_findings(
    model: CompiledModel, output: Output, columns: Sequence[tuple[str, DataType | None]], settings: Mapping[str, str]
) -> Iterator[Finding]:
    """Yields the finding for a stored model whose readers would get other values than the query has. `settings` are
    those of Spark.
    """
    # Readers of a stored model read its first sink only.
    if not model.config.is_stored or output != model.output:
        return
    options = {name.lower(): str(value) for name, value in output.options.items()}
    facts = FileFacts(output.format, options, settings)
    partitions = {name.lower() for name in output.partition_by} if format_of(output.format).names_folders else set()
    changes = {
        name: changed_partition(facts, type_) if name.lower() in partitions else changed_value(facts, type_)
        for name, type_ in columns
        if type_ is not None
    }
    found = {name: change for name, change in changes.items() if change is not None}
    if not found:
        return
    name, change = next(iter(found.items()))
    names = quoted_list(list(found))
    is_partition = name.lower() in partitions
    yield Finding(
        "stored-model",
        f"`{model.name}` has materialized: stored, but sink `{output.sink}` changes values of {names}",
        f"`{name}`: {change}",
        f"partition by another column, for example by cast({quote_identifier(name)} as date) or hex({name})"
        if is_partition
        else "use format: parquet or another format that keeps all values; or remove `materialized`",
        model.location_of("partition_by" if is_partition else "materialized"),
    )


@output_rule("stored-model")
def outputs_of_one_run(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """A stored model must continue in the next run: a new output would begin without the rows of the last one."""
    if not model.config.is_stored or not model.streaming:
        return
    tables = compiled.tables_of(model.unique_id)
    table = next((table for table in tables if not format_of(table.format).is_restartable), None)
    if table is not None:
        yield Problem(
            f"`{model.name}` has materialized: stored, but writes to a new output in every run",
            f"it reads {table.described} of format {table.format}, which cannot resume",
            "remove `materialized`, or read a source that can resume, such as files or Kafka",
            model.location_of("materialized"),
        )


@output_rule("stored-model", severity=Severity.WARNING)
def streams_over_snapshots(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """A stream lists the files of a static table only when it starts."""
    if not model.streaming or model.config.trigger.facts.ends:
        return
    models = compiled.models.values()
    writers = {each.name for each in models if each.output and each.writes_snapshots_to(each.output)}
    for table in compiled.tables_of(model.unique_id):
        if table.stored is not None and table.name in writers:
            yield Problem(
                f"`{model.name}` runs until you stop it, and reads {table.described}, whose files each batch replaces",
                "Spark lists the files of a static table when a query starts; once they are gone, the query fails and "
                "restarts",
                f"use trigger='available_now', or write `{table.name}` to a table, such as Delta Lake",
                model.file.location,
            )
