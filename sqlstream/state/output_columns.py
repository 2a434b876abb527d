"""Whether a sink's format, or an existing table, can hold the columns of a changed query beside the existing rows.

The rules follow what Spark 4.3 does when it reads a folder in which files have different columns. Tests compare them
with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.compiler.sql.tokens import SqlTokenError, tokenize
from sqlstream.project.formats.file_options import LAYOUT
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import (
    Array,
    DataType,
    Decimal,
    Map,
    Primitive,
    Struct,
    Unknown,
    includes,
    type_ddl,
    type_name,
)
from sqlstream.project.types.ddl import known_type
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.sql_difference import sql_difference


@dataclass(frozen=True)
class ColumnChange:
    """One change of the output: its description in `text`, and the current name of the column, None if it was removed.
    `undo` is the fix if the format cannot store the change, None if it can. `offset` is the offset of the change in the
    compiled SQL of the query's model, None if unknown. `is_added` marks a new column, and `is_key` another key of rows.
    `covers` are the columns that `text` describes, with their names before, or the new name of a new column. With
    `is_up_to_table`, only the table in the sink shows whether it can store the change, and `undo` is None. `is_layout`
    marks other options of text files.
    """

    text: str
    column: str | None = None
    undo: str | None = None
    offset: int | None = None
    is_added: bool = False
    is_key: bool = False
    covers: tuple[str, ...] = ()
    is_up_to_table: bool = False
    is_layout: bool = False


def stores_columns(query: QueryIdentity) -> bool:
    """Returns whether the first sink of a query keeps earlier rows with their columns, in files or tables."""
    facts = format_of(query.sink_format)
    return not query.writes_snapshots and bool(facts.is_table or facts.is_database or facts.layout)


def column_changes(old: QueryIdentity, new: QueryIdentity) -> tuple[ColumnChange, ...]:
    """Returns how the columns that a query writes to files or tables differ from those that it wrote before. Empty for
    other sinks, for files that each batch replaces, and if the ledger does not have the old columns.

    For a table of Delta Lake or Iceberg, `table_column_problems` finds what it cannot hold.
    """
    if not stores_columns(new) or old.columns is None or new.columns is None:
        return ()
    facts = format_of(new.sink_format)
    if facts.is_table or facts.is_database:
        return tuple(_of_table(old.columns, new))
    if lowercase(old.partition_by) != lowercase(new.partition_by):
        return (_repartitioned(old, new),)
    folders = set(lowercase(new.partition_by))
    if format_of(new.sink_format).layout == "positional":
        # Columns of `partition_by` are in the names of folders, not in the lines of files.
        before, after = (
            [column for column in side if column.name.lower() not in folders] for side in (old.columns, new.columns)
        )
        found = _by_position(before, after, new.sink_format)
    else:
        found = tuple(_by_name(old.columns, new.columns, folders, new.sink_format))
    return tuple(replace(change, offset=_offset(change, old, new)) for change in found)


def layout_changes(old: QueryIdentity, new: QueryIdentity) -> Iterator[ColumnChange]:
    """Yields the change of the options with which text files must be read as they were written. Readers of a stored
    model read all files with the new ones, so it cannot have both kinds.
    """
    if not new.adds_files or old.layout is None or new.layout is None:
        return
    types = " ".join(column.type for side in (old, new) for column in side.columns or ())
    words = set(re.findall(r"\w+", types)) if old.columns and new.columns else None
    before, after = list[str](), list[str]()
    for name in sorted({*old.layout, *new.layout}):
        default, concerned = LAYOUT[name]
        values = [side.get(name, default) for side in (old.layout, new.layout)]
        if values[0] != values[1] and (not concerned or words is None or words.intersection(concerned)):
            for texts, value in zip((before, after), values, strict=True):
                texts.append(f"{name} {value!r}" if value else f"no {name}")
    if not after:
        return
    was, now = ", ".join(before), ", ".join(after)
    text = f"the {new.sink_format} files had {was}, and new ones have {now}; "
    if new.is_stored:
        text += f"readers of `{new.model}` would misread the earlier ones"
        yield ColumnChange(text, undo=f"set the options of the sink back to {was}", is_layout=True)
    else:
        yield ColumnChange(f"{text}no reader can read both with the same options", is_layout=True)


def table_problems(
    table: str, provider: str, columns: tuple[OutputColumn, ...], new: QueryIdentity
) -> tuple[ColumnChange, ...]:
    """Returns why a `table` of Spark's catalog with these `columns` cannot store those of a query, each with a fix.

    Spark writes any columns to the files of a table, and reads them with those that the table declares. Tables that are
    not files, such as Delta's, check the columns themselves.
    """
    types = {column.name: column.ddl for column in new.columns or ()}
    # As if the table were what an earlier version of the query has written.
    found = column_changes(replace(new, sink_format=provider, columns=columns), replace(new, sink_format=provider))
    return tuple(
        replace(
            change,
            text=f"column `{change.column}` is not a column of the table {table}",
            undo=f"run ALTER TABLE {table} ADD COLUMNS ({types[change.column]})",
        )
        if change.is_added and change.column
        else change
        for change in found
        if change.is_added or change.undo
    )


def _offset(change: ColumnChange, old: QueryIdentity, new: QueryIdentity) -> int | None:
    sql = new.models.get(new.model, "")
    named = None if change.column is None else _named_at(sql, change.column)
    difference = sql_difference(old.models.get(old.model, sql), sql) if named is None else None
    return named if difference is None else difference.offset


def _named_at(sql: str, column: str) -> int | None:
    """Returns the offset of a column's name in the outermost select list, None if it is not there."""
    try:
        tokens = tokenize(sql)
    except SqlTokenError:
        return None
    depth = 0
    for token, following in zip(tokens, (*tokens[1:], None), strict=False):
        depth += (token.key in ("(", "[")) - (token.key in (")", "]"))
        ends = following is None or following.key in (",", "FROM")
        if depth == 0 and ends and token.is_name and token.name.lower() == column.lower():
            return token.start
    return None


def lowercase(names: Sequence[str]) -> list[str]:
    """Returns names as Spark compares them."""
    return [name.lower() for name in names]


def _repartitioned(old: QueryIdentity, new: QueryIdentity) -> ColumnChange:
    before, after = (", ".join(side.partition_by) for side in (old, new))
    return ColumnChange(
        f"the output was partitioned by {before or 'nothing'}, and is now partitioned by {after or 'nothing'}; "
        "readers of the folder would not see all of its rows",
        undo=f"set partition_by back to [{before}]",
    )


def _by_position(old: Sequence[OutputColumn], new: Sequence[OutputColumn], fmt: str) -> tuple[ColumnChange, ...]:
    before, after = (lowercase([column.name for column in side]) for side in (old, new))
    if before == after:
        return ()
    names = ", ".join(column.name for column in old)
    return (
        ColumnChange(
            f"the columns were {names}, and are now {', '.join(column.name for column in new)}; {fmt} files "
            "store values by position, so readers would mix up columns",
            undo=f"select the original columns: {names}",
            covers=tuple(column.name for column in (*old, *new)),
        ),
    )


def _by_name(
    old: Sequence[OutputColumn], new: Sequence[OutputColumn], folders: set[str], fmt: str
) -> Iterator[ColumnChange]:
    before, after = ({column.name.lower(): column for column in side} for side in (old, new))
    renamed = new_names(old, new)
    for key, column in before.items():
        if key not in after:
            yield _removed(column, renamed.get(column.name))
    for key, column in after.items():
        if key not in before:
            text = f"column `{column.name}` is new, and null in existing rows"
            yield ColumnChange(text, column.name, is_added=True, covers=(column.name,))
        elif fmt == "json" and column.name != before[key].name:
            yield _respelled(before[key], column)
        # Folder names are text for columns of every type.
        elif column.type != before[key].type and key not in folders:
            yield _retyped(before[key], column, fmt)


def new_names(old: Sequence[OutputColumn], new: Sequence[OutputColumn]) -> dict[str, str]:
    """Returns the names that removed columns may have now: each new column of the same type is that of one removed
    column, in order, and the only new column that of the only removed one.
    """
    before, after = ({column.name.lower(): column for column in side} for side in (old, new))
    removed = [column for key, column in before.items() if key not in after]
    added = [column for key, column in after.items() if key not in before]
    found = {}
    for column in removed:
        is_only = len(removed) == len(added) == 1
        same = next((each for each in added if each.type == column.type or is_only), None)
        if same is not None:
            added.remove(same)
            found[column.name] = same.name
    return found


def _of_table(old: Sequence[OutputColumn], new: QueryIdentity) -> Iterator[ColumnChange]:
    """Yields the changes for a table, which has its own columns: it may have a new one with another type, or lack it
    where a run does not add it.
    """
    columns = new.columns or ()
    before, after = ({column.name.lower(): column for column in side} for side in (old, columns))
    renamed = new_names(old, columns)
    for key, column in after.items():
        if key not in before:
            text = f"column `{column.name}` is new, and null in existing rows"
            yield ColumnChange(text, column.name, is_added=True, covers=(column.name,), is_up_to_table=True)
        elif column.type != before[key].type:
            text = f"column `{column.name}` was {before[key].type}, and is now {column.type}"
            yield ColumnChange(text, column.name, covers=(before[key].name,), is_up_to_table=True)
    for key, column in before.items():
        if key not in after:
            kept = "rows keep their old value when they are updated, unless the table no longer has the column"
            what = kept if new.updates_rows else "is null in new rows"
            text = f"column `{column.name}` was removed, and {what}"
            if column.name in renamed:
                name = renamed[column.name]
                text += f"; if `{name}` is its new name, rename the column of the table before the next run"
            yield ColumnChange(text, covers=(column.name,), is_up_to_table=new.updates_rows)


def _removed(column: OutputColumn, renamed: str | None) -> ColumnChange:
    name = quote_identifier(column.name)
    text, keep = f"column `{column.name}` was removed", f"keep it: cast(null as {column.type}) as {name}"
    if renamed is not None:
        text += f"; if `{renamed}` is its new name, readers would see two half-empty columns"
        keep = f"select `{renamed}` under the old name, as {name}; or, if it is another column, {keep}"
    return ColumnChange(text, renamed, keep, covers=(column.name,))


def _respelled(old: OutputColumn, new: OutputColumn) -> ColumnChange:
    return ColumnChange(
        f"column `{old.name}` is now spelled `{new.name}`; Spark would read null from the JSON records with one "
        "of the spellings",
        new.name,
        f"keep the spelling `{old.name}`",
        covers=(old.name,),
    )


def _retyped(old: OutputColumn, new: OutputColumn, fmt: str) -> ColumnChange:
    text = f"column `{new.name}` was {old.type}, and is now {new.type}"
    if format_of(fmt).layout == "named":
        return ColumnChange(text, new.name, covers=(old.name,))
    if _is_readable(known_type(old.type), known_type(new.type)):
        return ColumnChange(f"{text}; new fields are null in existing rows", new.name, covers=(old.name,))
    name = quote_identifier(new.name)
    return ColumnChange(
        f"{text}; Spark cannot read {fmt} files with both types in one folder",
        new.name,
        f"keep the old type: cast(... as {old.type}) as {name}; or add the new column under another name",
        covers=(old.name,),
    )


def _is_readable(old: DataType, new: DataType) -> bool:
    """Returns whether Spark can read files with the two types together: the same type, with optional new fields in
    structs.
    """
    if isinstance(old, Struct) and isinstance(new, Struct):
        fields: Mapping[str, DataType] = {field.name.lower(): field.type for field in new.fields}
        return all(
            field.name.lower() in fields and _is_readable(field.type, fields[field.name.lower()])
            for field in old.fields
        )
    if isinstance(old, Array) and isinstance(new, Array):
        return _is_readable(old.element, new.element)
    if isinstance(old, Map) and isinstance(new, Map):
        return _is_readable(old.key, new.key) and _is_readable(old.value, new.value)
    return _stored(old) == _stored(new)


def _stored(data_type: DataType) -> str:
    """Returns the type as stored in files, where char and varchar are strings."""
    if isinstance(data_type, Primitive) and data_type.name in ("char", "varchar"):
        return "string"
    return str(data_type)


# Whether a table of Delta Lake or Iceberg can hold the columns of a query.
#
# The table has its columns, so it is compared itself, not the ledger. `FormatTable` adds new columns and casts
# values.


def table_column_problems(
    table: str,
    columns: Sequence[OutputColumn],
    partitions: Sequence[str],
    new: QueryIdentity,
    old: QueryIdentity | None,
) -> tuple[ColumnChange, ...]:
    """Returns why a table with `columns` and `partitions` cannot hold the rows of a query, each with a fix.

    `old` is the query that wrote to the table last, None if the ledger of none is known. A column that is new since
    then is no problem: the run adds it.
    """
    return tuple(_problems(table, columns, partitions, new, old))


def _problems(
    table: str,
    columns: Sequence[OutputColumn],
    partitions: Sequence[str],
    new: QueryIdentity,
    old: QueryIdentity | None,
) -> Iterator[ColumnChange]:
    written = old.columns if old is not None else None
    before = None if written is None else {column.name.lower(): column for column in written}
    stored = {column.name.lower(): column for column in columns}
    for column in new.columns or ():
        key, name = column.name.lower(), quote_identifier(column.name)
        if key in stored:
            if not _holds(known_type(stored[key].type), known_type(column.type)):
                undo = f"cast it: cast(... as {stored[key].type}) as {name}; or add the new column under another name"
                statements = "; ".join(widening(table, stored[key], column, new.sink_format))
                yield ColumnChange(
                    f"column `{column.name}` is {column.type}, and the table has it as {stored[key].type}",
                    column.name,
                    f"run {statements}; or {undo}" if statements else undo,
                )
                continue
            added = missing_fields(stored[key], column)
            if before is not None and key in before:
                # the run adds those that are new since the query last wrote to the table
                new_fields = {path.lower() for path, _ in missing_fields(before[key], column)}
                added = [each for each in added if each[0].lower() not in new_fields]
            for path, type_ in added:
                yield ColumnChange(
                    f"{path} is not a field of the table",
                    column.name,
                    f"run ALTER TABLE {table} ADD COLUMNS ({path} {type_})",
                )
        elif before is None or key in before:
            yield ColumnChange(
                f"column `{column.name}` is not a column of the table",
                column.name,
                f"run ALTER TABLE {table} ADD COLUMNS ({name} {column.type})",
            )
    if old is not None and new.updates_rows:
        yield from _stale(table, stored, new, old)
    if new.partition_by and lowercase(new.partition_by) != lowercase(partitions):
        now, wanted = (", ".join(names) or "nothing" for names in (partitions, new.partition_by))
        yield ColumnChange(
            f"the table is partitioned by {now}, and the query by {wanted}",
            undo=f"set partition_by to [{', '.join(partitions)}]" if partitions else "remove partition_by",
        )


def widening(table: str, stored: OutputColumn, given: OutputColumn, format_name: str) -> tuple[str, ...]:
    """Returns the statements that give a column of a table of Delta Lake or Iceberg the wider type of `given`; none for
    any other type.
    """
    types = known_type(stored.type), known_type(given.type)
    same_scale = (
        not (isinstance(types[0], Decimal) and isinstance(types[1], Decimal)) or types[0].scale == types[1].scale
    )
    if not _holds(types[1], types[0]) or not same_scale or not isinstance(types[1], Primitive | Decimal):
        return ()
    feature = f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    alter = f"ALTER TABLE {table} ALTER COLUMN {quote_identifier(stored.name)} TYPE {given.type}"
    return (feature, alter) if format_name == "delta" else (alter,)


def missing_fields(stored: OutputColumn, given: OutputColumn) -> list[tuple[str, str]]:
    """Returns the fields of structs within a column that the type of `stored` lacks: their paths as ALTER TABLE takes
    them, such as `items.element.color`, and their types.
    """
    name = quote_identifier(stored.name)
    return list(_missing_in(name, known_type(stored.type), known_type(given.type)))


def _missing_in(path: str, stored: DataType, given: DataType) -> Iterator[tuple[str, str]]:
    if isinstance(stored, Struct) and isinstance(given, Struct):
        for field in given.fields:
            known = stored.field(field.name)
            if known is None:
                yield f"{path}.{quote_identifier(field.name)}", type_ddl(field.type, as_written=True)
            else:
                yield from _missing_in(f"{path}.{quote_identifier(known.name)}", known.type, field.type)
    elif isinstance(stored, Array) and isinstance(given, Array):
        yield from _missing_in(f"{path}.element", stored.element, given.element)
    elif isinstance(stored, Map) and isinstance(given, Map):
        yield from _missing_in(f"{path}.value", stored.value, given.value)


def _stale(
    table: str, stored: Mapping[str, OutputColumn], new: QueryIdentity, old: QueryIdentity
) -> Iterator[ColumnChange]:
    """Yields the columns of the table that the query no longer writes: MERGE leaves their old value in updated rows."""
    written = {column.name.lower() for column in new.columns or ()}
    renamed = new_names(old.columns or (), new.columns or ())
    for column in old.columns or ():
        key, name = column.name.lower(), quote_identifier(column.name)
        if key in written or key not in stored:
            continue
        undo = f"select it again, or cast(null as {column.type}) as {name}"
        undo += f"; or run ALTER TABLE {table} DROP COLUMN {name}"
        new_name = renamed.get(column.name)
        if new_name is not None and new_name.lower() not in stored:
            statement = f"ALTER TABLE {table} RENAME COLUMN {name} TO {quote_identifier(new_name)}"
            undo = f"if `{new_name}` is its new name, run {statement}; otherwise {undo}"
        text = f"updated rows would keep the old value of its column `{column.name}`, which the query no longer writes"
        yield ColumnChange(text, new_name, undo)


def _holds(stored: DataType, given: DataType) -> bool:
    """Returns whether a column of the type `stored` holds all values of the type `given`."""
    if isinstance(stored, Struct) and isinstance(given, Struct):
        fields = {field.name.lower(): field.type for field in given.fields}
        known = {field.name.lower(): field.type for field in stored.fields}
        return fields.keys() >= known.keys() and all(_holds(type_, fields[name]) for name, type_ in known.items())
    if isinstance(stored, Array) and isinstance(given, Array):
        return _holds(stored.element, given.element)
    if isinstance(stored, Map) and isinstance(given, Map):
        # no format adds fields to the keys of a map
        same_keys = str(stored.key).lower() == str(given.key).lower() or not isinstance(stored.key, Struct)
        return same_keys and _holds(stored.key, given.key) and _holds(stored.value, given.value)
    if isinstance(stored, Primitive) and isinstance(given, Primitive) and _name(stored) == _name(given):
        return True
    # Iceberg stores a tinyint as an int
    is_unknown = isinstance(stored, Unknown) or isinstance(given, Unknown)
    return is_unknown or type_name(given) == "void" or includes(stored, given)


def _name(type_: Primitive) -> str:
    """Returns the name of a type as it is stored: char and varchar are strings."""
    return "string" if type_.name in ("char", "varchar") else type_.name
