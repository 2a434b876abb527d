"""Rules on sinks that are tables of Delta Lake, Iceberg or a database: the rows that keys replace and delete, and the
types that a table can store.
"""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.type_rules import is_ordered
from sqlstream.compiler.rules.rule import Problem, Problems, declared_outputs, output_rule, rule
from sqlstream.errors import Severity
from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.files.paths import is_absolute, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import type_name
from sqlstream.project.wording import did_you_mean, quoted, quoted_list


@output_rule("unknown-column")
def columns_of_keys(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """The columns of `unique_key` and `sequence_by` must be columns of the model."""
    columns = compiled.columns.get(model.unique_id)
    names = [column.name for column in columns or ()]
    known = {name.lower() for name in names}
    settings = {"unique_key": model.config.unique_key, "sequence_by": model.config.sequence_by}
    given = ((setting, key) for setting, keys in settings.items() for key in keys if columns is not None)
    for setting, key in given:
        if key.lower() not in known:
            yield Problem(
                f"`{model.name}` has the {setting} {quoted(key)}, which is not one of its columns",
                f"the columns of `{model.name}` are {quoted_list(names)}",
                did_you_mean(key, names),
                model.location_of(setting),
            )


@output_rule("missing-key")
def settings_without_key(_: CompiledProject, model: CompiledModel, __: Output) -> Problems:
    """`delete_when` and `sequence_by` need a `unique_key`."""
    purposes = {
        "delete_when": "a row that meets the condition deletes the row of the output with the same unique_key",
        "sequence_by": "sequence_by decides which of several rows with the same unique_key counts",
    }
    for setting, purpose in purposes.items():
        if getattr(model.config, setting) and not model.config.unique_key:
            yield Problem(
                f"`{model.name}` sets {setting} but no unique_key",
                purpose,
                "add unique_key with the columns that identify a row",
                model.location_of(setting),
            )


@output_rule("missing-key")
def updates_without_key(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A table or a database needs a `unique_key` to replace the rows that a batch of update mode changes."""
    facts, config = format_of(output.format), model.config
    needs_key = facts.is_database or facts.updates_by_key
    if needs_key and model.streaming and config.output_mode == "update" and not config.unique_key:
        yield Problem(
            f"`{model.name}` streams in update mode into sink `{output.sink}` of format {output.format}, but has no "
            "unique_key",
            "each batch has the changed rows, and the key decides which rows of the table they replace",
            "add unique_key with the columns that identify a row, usually those of GROUP BY",
            model.location_of("output_mode"),
        )


@output_rule("unused-config", severity=Severity.WARNING)
def unused_keys(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """`unique_key` and `delete_when` have an effect only on sinks that replace or delete rows by key."""
    facts, config = format_of(output.format), model.config
    uses = (
        ("unique_key", facts.takes_keys, "only adds rows, or replaces all of them", "replace rows"),
        ("delete_when", facts.deletes_by_key or not config.unique_key, "cannot delete single rows", "delete rows"),
    )
    for setting, has_effect, limit, ability in uses:
        if getattr(config, setting) and not has_effect:
            yield Problem(
                f"`{model.name}` sets {setting}, which has no effect on sink `{output.sink}` of format {output.format}",
                f"this format {limit}",
                f"remove {setting}; or write to a table that can {ability}, such as format jdbc",
                model.location_of(setting),
            )


@output_rule("row-order")
def sinks_without_order(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Only a sink that replaces rows by key can apply rows in the order of `sequence_by`."""
    if model.config.sequence_by and not format_of(output.format).merges_batches:
        yield Problem(
            f"`{model.name}` sets sequence_by, but sink `{output.sink}` of format {output.format} keeps rows in the "
            "order of their arrival",
            "it cannot leave out a row that arrives after a newer one with the same unique_key",
            "write to a table that replaces rows by key: format delta, iceberg, jdbc or sqlite; or remove sequence_by, "
            "and let the readers of the output take the newest row of each key",
            model.location_of("sequence_by"),
        )


@output_rule("row-order")
def types_of_sequences(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """The columns of `sequence_by` must have types that the sink can compare as Spark does."""
    dialect = dialect_of(output.format, output.options)
    wanted = {name.lower() for name in model.config.sequence_by}
    for column in compiled.columns.get(model.unique_id) or ():
        if column.name.lower() not in wanted or column.type is None:
            continue
        if is_ordered(column.type) is False:
            why = f"its type is {column.type}, whose values have no order"
        elif dialect is not None and not dialect.keeps_order(column.type):
            why = f"its type is {column.type}, which {dialect.title} stores as text, in another order"
        else:
            continue
        yield Problem(
            f"`{model.name}` cannot be ordered by `{column.name}` in sink `{output.sink}`",
            why,
            "use a number, a time or a text, such as the time of the change or its position in the log",
            model.location_of("sequence_by"),
        )


@rule("relative-storage")
def embedded_files(compiled: CompiledProject) -> Problems:
    """A SQLite file is on the disk of one machine, so its target runs on one machine and stores its data there."""
    target = compiled.project.target
    outputs = {output.sink: output for output in declared_outputs(compiled) if format_of(output.format).is_embedded}
    for output in outputs.values():
        path = output.path if output.path is not None and is_absolute(output.path) else target.storage
        is_remote = not plain_path("/", path).startswith("/")
        if is_remote or not target.is_local:
            where = f"stores it at {path}" if is_remote else f"runs on {target.master}"
            yield Problem(
                f"sink `{output.sink}` writes a {output.format} file, but target `{target.name}` {where}",
                "the file must be on a disk of the machine that runs the query",
                "write to a database with format: jdbc, or use a target with a local master and a local storage",
                output.location,
            )


@output_rule("sink-schema")
def unstored_types(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A database cannot store some types, and some of them only outside of the key."""
    dialect = dialect_of(output.format, output.options)
    keys = {key.lower() for key in model.config.unique_key}
    for column in compiled.columns.get(model.unique_id) or () if dialect is not None else ():
        if column.type is None or not type_name(column.type) or dialect is None:
            continue
        is_key = column.name.lower() in keys
        if dialect.store(column.type, is_key) is None:
            yield Problem(
                f"sink `{output.sink}` cannot write the column `{column.name}` of `{model.name}`",
                f"its type is {column.type}, which {dialect.title} cannot store" + (" in a key" if is_key else ""),
                f"use cast({column.in_sql} as string) as {column.in_sql}",
                model.location_of("sink"),
            )
