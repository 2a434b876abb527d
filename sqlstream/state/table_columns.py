"""Whether a table of Delta Lake or Iceberg can hold the columns of a query.

The table has its columns, so it is compared itself, not the ledger. `FormatTable` adds new columns and casts values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_type
from sqlstream.project.types.types import Array, DataType, Decimal, Map, Primitive, Struct, Unknown
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.output_columns import ColumnChange, lowercase, new_names

WIDER = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
"""The types that can hold all values of a type. Iceberg stores a tinyint as an int."""


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
    before = None if written is None else {column.name.lower() for column in written}
    stored = {column.name.lower(): column for column in columns}
    for column in new.columns or ():
        key, name = column.name.lower(), quote_identifier(column.name)
        if key in stored:
            if not _holds(_parsed(stored[key].type), _parsed(column.type)):
                yield ColumnChange(
                    f"column `{column.name}` is {column.type}, and the table has it as {stored[key].type}",
                    column.name,
                    f"cast it: cast(... as {stored[key].type}) as {name}; or add the new column under another name",
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


def _parsed(text: str) -> DataType:
    try:
        return parse_type(text)
    except TypeSyntaxError:
        return Unknown(text)


def _holds(stored: DataType, given: DataType) -> bool:
    """Returns whether a column of the type `stored` holds all values of the type `given`."""
    if isinstance(stored, Struct) and isinstance(given, Struct):
        pairs = zip(stored.fields, given.fields, strict=False)
        same = [field.name.lower() for field in stored.fields] == [field.name.lower() for field in given.fields]
        return same and all(_holds(one.type, other.type) for one, other in pairs)
    if isinstance(stored, Array) and isinstance(given, Array):
        return _holds(stored.element, given.element)
    if isinstance(stored, Map) and isinstance(given, Map):
        return _holds(stored.key, given.key) and _holds(stored.value, given.value)
    if isinstance(stored, Decimal) and isinstance(given, Decimal):
        digits = stored.precision - stored.scale >= given.precision - given.scale
        return digits and stored.scale >= given.scale
    if isinstance(stored, Primitive) and isinstance(given, Primitive):
        one, other = _name(stored), _name(given)
        return one == other or other == "void" or one in WIDER.get(other, ())
    return isinstance(stored, Unknown) or isinstance(given, Unknown) or stored == given


def _name(type_: Primitive) -> str:
    """Returns the name of a type as it is stored: char and varchar are strings."""
    return "string" if type_.name in ("char", "varchar") else type_.name
