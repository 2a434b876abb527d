"""Rules on sinks that are tables of Delta Lake, Iceberg or a database: the rows that keys replace and delete, and the
types that a table can store.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.type_rules import is_ordered
from sqlstream.compiler.graph import source_id
from sqlstream.compiler.rules.rule import Problem, Problems, declared_outputs, output_rule, rule
from sqlstream.compiler.sql.tokens import tokenize
from sqlstream.errors import Severity
from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.databases.row_history import IS_CURRENT, VALID_FROM, VALID_TO
from sqlstream.project.files.paths import is_absolute, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.project.messages.message_format import AFTER, METADATA, ROW, UNAVAILABLE
from sqlstream.project.types.data_types import type_name
from sqlstream.project.wording import did_you_mean, quoted, quoted_list

OFFSET = METADATA["offset"].name


@output_rule("unknown-column")
def columns_of_keys(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """The columns of `unique_key`, `sequence_by` and other settings must be columns of the model."""
    columns = compiled.columns.get(model.unique_id)
    names = [column.name for column in columns or ()]
    known = {name.lower() for name in names}
    settings = {
        "unique_key": model.config.unique_key,
        "sequence_by": model.config.sequence_by,
        "track_columns": model.config.track_columns,
        "unavailable_columns": filter(None, [model.config.unavailable_columns]),
    }
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
def histories_without_order(_: CompiledProject, model: CompiledModel, __: Output) -> Problems:
    """`history` needs a `unique_key` and one column in `sequence_by`, and `track_columns` needs `history`."""
    config, count = model.config, len(model.config.sequence_by)
    if config.track_columns and not config.history:
        yield Problem(
            f"`{model.name}` sets track_columns but no history",
            "these are the columns whose change begins a new version of a row, and only a history has versions",
            "add history=true, or remove track_columns",
            model.location_of("track_columns"),
        )
    if config.history and (not config.unique_key or count != 1):
        missing = f"{count or 'no'} columns in sequence_by" if config.unique_key else "no unique_key"
        yield Problem(
            f"`{model.name}` sets history, but has {missing}",
            "a version of a row begins at the value of one column, which orders the changes of a key",
            "set unique_key to the columns that identify a row, and sequence_by to the column with the time or the "
            "position of a change",
            model.location_of("history"),
        )


@output_rule("row-order")
def sinks_without_history(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Only a table of a database, Delta Lake or Iceberg can keep the versions of rows, for a stream of changes."""
    facts, config = format_of(output.format), model.config
    if not config.history:
        return
    if not (facts.is_database or facts.updates_by_key):
        yield Problem(
            f"`{model.name}` sets history, but sink `{output.sink}` of format {output.format} only adds rows",
            "a change also ends the version of the row before it, which is in the output already",
            "write to a table: format delta, iceberg, jdbc or sqlite",
            model.location_of("history"),
        )
    if not model.streaming or config.output_mode == "complete":
        which = "streams in complete mode" if model.streaming else "is a batch model"
        yield Problem(
            f"`{model.name}` sets history, but {which}",
            "each run or batch replaces all rows, so there are no changes of single rows",
            "read a stream of changes in append or update mode, or remove history",
            model.location_of("history"),
        )


@output_rule("unavailable-value")
def lacking_values(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A query that passes on values which a change event of Debezium may lack must say which ones it lacks."""
    columns, config = compiled.columns.get(model.unique_id) or (), model.config
    lacking = [column.name for column in columns if column.may_lack]
    if config.unavailable_columns is not None or not lacking:
        return
    if config.unique_key and _replaces_rows(model, output):
        yield Problem(
            f"`{model.name}` would write null for the values of {quoted_list(lacking)} that a change event lacks",
            f"its source sets listUnavailable, and sink `{output.sink}` replaces the row with the same unique_key",
            f"select the column `{UNAVAILABLE}` of the source too, and set unavailable_columns='{UNAVAILABLE}'",
            model.location_of("unique_key"),
        )
    elif not _lists(compiled, columns):
        yield Problem(
            f"`{model.name}` does not say which values of {quoted_list(lacking)} a change event lacks",
            "its source sets listUnavailable, so they are null, like other values that are null in the database",
            f"select the column `{UNAVAILABLE}` of the source too",
            model.location_of("sink"),
        )


def _replaces_rows(model: CompiledModel, output: Output) -> bool:
    return model.streaming and model.config.output_mode != "complete" and format_of(output.format).takes_keys


def _listing_sources(compiled: CompiledProject) -> set[str]:
    """Returns the sources of Debezium whose events list the values that they lack."""
    tables = ((table, table.messages) for table in compiled.project.sources)
    name = compiled.project.name
    return {source_id(name, table) for table, found in tables if found is not None and found.lists_unavailable}


def _lists(compiled: CompiledProject, columns: Sequence[Column]) -> set[tuple[str, ...]]:
    """Returns the paths of the columns that are such a list."""
    sources = _listing_sources(compiled)
    return {each.path for each in columns if each.path[1:] == (UNAVAILABLE,) and each.path[0] in sources}


@output_rule("unavailable-value")
def lacking_values_in_python(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A Python model can make a wrong value of one that a change event of Debezium lacks."""
    read = {model.unique_id, *compiled.upstream(model.unique_id)}
    functions = [each.name for node, each in compiled.models.items() if node in read and each.file.is_python]
    replaces = model.config.unique_key and _replaces_rows(model, output)
    if functions and replaces and not _listing_sources(compiled).isdisjoint(read):
        yield Problem(
            f"`{model.name}` could write null for values that a change event lacks",
            f"its source sets listUnavailable, and the compiler does not follow {quoted_list(functions)}, in Python",
            "read the source in SQL, or without listUnavailable; or lower this error if your code handles the nulls",
            model.location_of("unique_key"),
        )


@output_rule("unavailable-value")
def kept_values(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """With `unavailable_columns`, a table keeps the value of the change before by the name of its column."""
    columns, config = compiled.columns.get(model.unique_id) or (), model.config
    setting = config.unavailable_columns
    if setting is None:
        return
    named = {column.name.lower(): column for column in columns}
    listed = named.get(setting.lower())
    if listed is None:
        return
    if listed.path not in _lists(compiled, columns):
        yield Problem(
            f"`{model.name}` sets unavailable_columns to {quoted(setting)}, which is another column",
            f"it must be the column `{UNAVAILABLE}` of a source with value_format debezium and listUnavailable",
            f"select `{UNAVAILABLE}` of this source, or remove unavailable_columns",
            model.location_of("unavailable_columns"),
        )
        return
    condition = [token.name for token in tokenize(config.delete_when or "") if token.is_name]
    for key, names in (("delete_when", condition), ("deduplicate", config.deduplicate)):
        used = {name.lower() for name in names}
        read = [column.name for column in columns if column.may_lack and column.name.lower() in used]
        if read:
            yield Problem(
                f"`{model.name}` sets a {key} that reads {quoted_list(read)}, which a change event may not have",
                "the source sets listUnavailable, so the value is null in the changes that leave it as it was",
                "use columns that every event has, such as the operation: delete_when: op = 'd'",
                model.location_of(key),
            )
    yield from _order_of_events(model, output, listed.path[0], [named.get(each.lower()) for each in config.sequence_by])
    for column in columns:
        table, name = column.path[1:2], column.path[2:]
        if column.may_lack and (
            table not in ((ROW,), (AFTER,)) or [each.lower() for each in name] != [column.name.lower()]
        ):
            yield Problem(
                f"`{model.name}` has a column {quoted(column.name)} that is not a column of the change event's row",
                f"the list `{UNAVAILABLE}` has the names of the columns of `{ROW}`, and the table keeps values by them",
                f"select a column of `{ROW}` under its name, or leave it out",
                model.location_of("unavailable_columns"),
            )


def _order_of_events(model: CompiledModel, output: Output, source: str, sequence: Sequence[Column | None]) -> Problems:
    """Yields why the sink cannot tell which value is the last one before a change."""
    config, facts = model.config, format_of(output.format)
    is_merged = model.streaming and config.output_mode != "complete" and facts.merges_batches
    if not is_merged or config.history or not config.unique_key:
        yield Problem(
            f"`{model.name}` sets unavailable_columns, but sink `{output.sink}` cannot keep the values of its rows",
            "a row keeps the values of the row with the same unique_key, and a history has several of them",
            "set unique_key without history, in append or update mode, and write to format delta, iceberg, jdbc or "
            "sqlite; or set REPLICA IDENTITY FULL in PostgreSQL, so that a change event has all values",
            model.location_of("unavailable_columns"),
        )
    elif [column.path if column is not None else () for column in sequence] != [(source, OFFSET)]:
        order = f"orders its rows by {quoted_list(config.sequence_by)}" if sequence else "has no sequence_by"
        yield Problem(
            f"`{model.name}` sets unavailable_columns, but {order}",
            "the value to keep is that of the change before, which has arrived before only in the order of the topic",
            f"select `{OFFSET}`, and set sequence_by='{OFFSET}'",
            model.location_of("unavailable_columns"),
        )


@output_rule("stored-model")
def stored_histories(_: CompiledProject, model: CompiledModel, __: Output) -> Problems:
    """Other models cannot read the stored output of a model with a history."""
    if model.config.history and model.config.is_stored:
        yield Problem(
            f"`{model.name}` sets history and materialized='stored'",
            "its table has the versions of each row, with more columns than the model",
            "declare the table as a source for the models that need the versions, or remove one of the two",
            model.location_of("history"),
        )


@output_rule("duplicate-name")
def columns_of_histories(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """A model with `history` has no columns with the names of those that the history adds."""
    names = {VALID_FROM, VALID_TO, IS_CURRENT} if model.config.history else set()
    for column in compiled.columns.get(model.unique_id) or ():
        if column.name.lower() in names:
            yield Problem(
                f"`{model.name}` has a column `{column.name}`, which its history adds",
                "the table also has the columns `valid_from`, `valid_to` and `is_current`",
                "give the column of the model another name",
                model.location_of("history"),
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
        (
            "track_columns",
            config.history,
            "keeps one version of each row without history",
            "keep versions, with history",
        ),
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
def sinks_without_order(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Only a sink that replaces rows by key applies `sequence_by`; other sinks beside it get all rows."""
    formats = {sink.name: format_of(sink.format) for sink in compiled.project.sinks}
    has_order = any(formats[name].merges_batches for name in model.config.sinks if name in formats)
    if model.config.sequence_by and not has_order:
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
