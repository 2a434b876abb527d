"""The SQL statements that create tables and apply a micro-batch from a staging table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstream.project.databases.dialect import BATCHES, Dialect, Stored
from sqlstream.project.databases.row_history import (
    ARRIVED_AT,
    AT,
    IS_CURRENT,
    IS_DELETED,
    NAMES,
    VALID_FROM,
    VALID_TO,
    RowHistory,
)
from sqlstream.project.types.data_types import Primitive

TOMBSTONES = "_sqlstream_tombstones"
"""The start of the names of tables with deleted keys; for a table with a path, the folder beside it that has them."""

KEPT = "_sqlstream_kept"
"""The column of a staging table with a 1 for each column whose value the table keeps, and a 0 for the others."""

DELETED_AT = "_sqlstream_deleted_at"
"""The column of a table of tombstones with the time of the deletion, in seconds since 1970."""

OUTPUT_COLUMN = "output_table"
"""The column of the table of records with the plain name of the table that a query writes: its versions share it."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of a table, and how the database stores it. `is_text`: its values are compared as texts. `is_required`:
    a new table allows no null in it.
    """

    name: str
    stored: Stored
    is_text: bool = False
    is_required: bool = False


@dataclass(frozen=True)
class TableLayout:
    """The table of a query: its quoted name, its columns, and the names of its key columns.

    With `deletes`, the staging table marks rows that delete their key. `sequence` are the names of the columns that
    order the rows of a key, across batches. `tombstones` is the quoted name of the table with the deleted keys and
    their sequence, empty without `deletes` or `sequence`. `tracked` are the names of the columns whose change begins a
    version of a row, None for a table without a history, and `changes` is then the quoted name of its table of changes.
    `unavailable` is the column that lists those whose value a row does not have, so that the table keeps its own; empty
    if every row has all values. `large` are the columns that it can list.
    """

    dialect: Dialect
    table: str
    columns: tuple[StoredColumn, ...]
    keys: tuple[str, ...]
    deletes: bool = False
    sequence: tuple[str, ...] = ()
    tombstones: str = ""
    tracked: tuple[str, ...] | None = None
    changes: str = ""
    unavailable: str = ""
    large: tuple[str, ...] = ()

    @property
    def stored(self) -> TableLayout:
        """The layout of the table itself: with a history it has more columns than a staging table, and other keys."""
        if self.tracked is None:
            return self
        (at,) = self.sequence_columns
        flag = self.dialect.store(Primitive("boolean"), False) or Stored("boolean")
        ends = [StoredColumn(name, at.stored, at.is_text) for name in (VALID_FROM, VALID_TO)]
        keys = (*(name for name in self.keys if name.lower() != at.name.lower()), VALID_FROM)
        return replace(self, columns=(*self.columns, *ends, StoredColumn(IS_CURRENT, flag)), keys=keys)

    @property
    def key_columns(self) -> tuple[StoredColumn, ...]:
        """The key columns, in the order of the keys."""
        return self._named(self.keys)

    @property
    def sequence_columns(self) -> tuple[StoredColumn, ...]:
        """The columns of the sequence, in its order."""
        return self._named(self.sequence)

    def _named(self, names: Sequence[str]) -> tuple[StoredColumn, ...]:
        by_name = {column.name.lower(): column for column in self.columns}
        return tuple(by_name[name.lower()] for name in names)


def create_table(layout: TableLayout) -> str:
    """Returns the statement that creates the table, with its key as the primary key."""
    quote = layout.dialect.quote
    keys = [quote(column.name) for column in layout.key_columns]
    required = {True: " NOT NULL", False: ""}
    parts = [f"{quote(each.name)} {each.stored.type}{required[each.is_required]}" for each in layout.columns]
    parts += [f"PRIMARY KEY ({', '.join(keys)})"] if keys else []
    return f"CREATE TABLE {layout.table} ({', '.join(parts)})"


def create_tombstones(layout: TableLayout) -> str:
    """Returns the statement that creates the table of tombstones, if it does not exist."""
    quote = layout.dialect.quote
    keys = [quote(column.name) for column in layout.key_columns]
    columns = dict.fromkeys((*layout.key_columns, *layout.sequence_columns))
    parts = [f"{quote(column.name)} {column.stored.type}" for column in columns]
    parts += [f"{quote(DELETED_AT)} bigint NOT NULL", f"PRIMARY KEY ({', '.join(keys)})"]
    return f"CREATE TABLE IF NOT EXISTS {layout.tombstones} ({', '.join(parts)})"


def create_staging(layout: TableLayout, staging: str) -> str:
    """Returns the statement that creates a staging table for the rows of one batch."""
    quote = layout.dialect.quote
    parts = [f"{quote(column.name)} {column.stored.staging_type}" for column in layout.columns]
    parts += [f"{quote(IS_DELETED)} boolean"] if layout.deletes else []
    parts += [f"{quote(KEPT)} text"] if layout.unavailable else []
    return f"{layout.dialect.staging} {staging} ({', '.join(parts)})"


def staged_rows(layout: TableLayout, delete_when: str | None) -> list[str]:
    """Returns the Spark SQL expressions of a staging row."""
    names = [(f"`{column.name.replace('`', '``')}`", column.stored.spark) for column in layout.columns]
    rows = [f"{template.format(name)} as {name}" for name, template in names]
    rows += [f"coalesce(({delete_when}), false) as {IS_DELETED}"] if layout.deletes else []
    if layout.unavailable:
        unavailable = f"`{layout.unavailable.replace('`', '``')}`"
        marks = ["''", *(f"if({is_listed(name, unavailable)}, 1, 0)" for name in layout.large)]
        rows.append(f"concat({', '.join(marks)}) as {KEPT}")
    return rows


def is_listed(name: str, unavailable: str) -> str:
    """Returns the condition of Spark SQL that the list of columns `unavailable` has `name`, in any letter case."""
    text = name.lower().replace("\\", "\\\\").replace("'", "\\'")
    return f"coalesce(exists({unavailable}, item -> lower(item) = '{text}'), false)"


def wrong_keys(layout: TableLayout, staging: str) -> str:
    """Returns the query for a key that is null or has several rows in the batch: one row that says whether it is null,
    no row if every key is fine.
    """
    keys = [layout.dialect.quote(column.name) for column in layout.key_columns]
    is_null = " OR ".join(f"{key} IS NULL" for key in keys)
    listed = ", ".join(keys)
    return (
        f"SELECT CASE WHEN {is_null} THEN 1 ELSE 0 END FROM {staging} "
        f"GROUP BY {listed} HAVING count(*) > 1 OR {is_null} LIMIT 1"
    )


def apply_batch(layout: TableLayout, staging: str, *, replaces: bool) -> Iterator[str]:
    """Yields the statements that apply the rows of a staging table. With `replaces` they become all rows of the table;
    otherwise a row replaces the row with its key, and without keys it is added.
    """
    quote, is_deleted = layout.dialect.quote, layout.dialect.quote(IS_DELETED)
    keys = [quote(column.name) for column in layout.key_columns]
    if replaces:
        yield f"DELETE FROM {layout.table}"
    elif layout.deletes:
        values = [column.stored.sql.format(f"s.{quote(column.name)}") for column in layout.key_columns]
        yield layout.dialect.delete(layout.table, staging, list(zip(keys, values, strict=True)), is_deleted)
    names = [quote(column.name) for column in layout.columns]
    values = [column.stored.sql.format(quote(column.name)) for column in layout.columns]
    # Without a WHERE, SQLite would read the ON of ON CONFLICT as that of a join.
    kept = f"NOT {is_deleted}" if layout.deletes else "1 = 1"
    others = [name for name in names if name not in keys]
    end = layout.dialect.on_conflict(keys, others) if keys and not replaces else ""
    yield f"INSERT INTO {layout.table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {staging} WHERE {kept}{end}"


def count_range(layout: TableLayout, staging: str) -> str:
    """Returns the query for the number of rows that `delete_range` removes."""
    return f"SELECT COUNT(*) FROM {layout.table} WHERE {_in_range(layout, staging)}"


def delete_range(layout: TableLayout, staging: str) -> str:
    """Returns the statement that removes the rows of a range. The staging table has one row with the first value of the
    only column of `layout` to remove, and one with the first value after them.
    """
    return f"DELETE FROM {layout.table} WHERE {_in_range(layout, staging)}"


def _in_range(layout: TableLayout, staging: str) -> str:
    (column,) = layout.columns
    name = layout.dialect.quote(column.name)
    value = column.stored.sql.format(name)
    return f"{name} >= (SELECT MIN({value}) FROM {staging}) AND {name} < (SELECT MAX({value}) FROM {staging})"


def keep_values(layout: TableLayout, staging: str) -> Iterator[str]:
    """Yields the statements that replace the values which the rows of a staging table do not have by those of the rows
    of the table with the same keys, null without one.
    """
    quote = layout.dialect.quote
    keys = [
        (quote(column.name), column.stored.sql.format(f"{staging}.{quote(column.name)}"))
        for column in layout.key_columns
    ]
    same = " AND ".join(f"t.{name} = {value}" for name, value in keys)
    for place, name in enumerate(map(quote, layout.large), start=1):
        value = f"(SELECT t.{name} FROM {layout.table} AS t WHERE {same})"
        yield f"UPDATE {staging} SET {name} = {value} WHERE SUBSTR({quote(KEPT)}, {place}, 1) = '1'"


def drop_outdated(layout: TableLayout, staging: str) -> Iterator[str]:
    """Yields the statements that remove from a staging table the rows that come too late: the table, or a tombstone,
    has their key with a higher sequence. A row of the table without a sequence is older than any other.
    """
    quote = layout.dialect.quote

    def compared(columns: Sequence[StoredColumn], operator: str, exact: str) -> str:
        forms = [exact if column.is_text else "{}" for column in columns]
        staged = [column.stored.sql.format(f"{staging}.{quote(column.name)}") for column in columns]
        mine = ", ".join(form.format(value) for form, value in zip(forms, staged, strict=True))
        others = ", ".join(form.format(f"t.{quote(item.name)}") for form, item in zip(forms, columns, strict=True))
        return f"({mine}) {operator} ({others})"

    same = compared(layout.key_columns, "=", "{}")  # as the index of the key compares
    lower = compared(layout.sequence_columns, "<", layout.dialect.exact)
    for table in filter(None, (layout.table, layout.tombstones)):
        yield f"DELETE FROM {staging} WHERE EXISTS (SELECT 1 FROM {table} AS t WHERE {same} AND {lower})"


def record_deletes(layout: TableLayout, staging: str, now: int, kept_from: int) -> Iterator[str]:
    """Yields the statements that turn the deletes of a staging table into tombstones, after `drop_outdated`: those of
    its other keys go, and those from before `kept_from`. Times are in seconds since 1970.
    """
    quote, table = layout.dialect.quote, layout.tombstones
    keys = [(quote(column.name), column.stored.sql) for column in layout.key_columns]
    values = [(name, sql.format(f"s.{name}")) for name, sql in keys]
    same = " AND ".join(f"{table}.{name} = {value}" for name, value in values)
    yield f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {staging} AS s WHERE {same})"
    yield f"DELETE FROM {table} WHERE {quote(DELETED_AT)} < {kept_from}"
    columns = tuple(dict.fromkeys((*layout.key_columns, *layout.sequence_columns)))
    names = [quote(column.name) for column in columns]
    found = [column.stored.sql.format(quote(column.name)) for column in columns]
    yield (
        f"INSERT INTO {table} ({', '.join(names)}, {quote(DELETED_AT)}) SELECT {', '.join(found)}, {now} "
        f"FROM {staging} WHERE {quote(IS_DELETED)}"
    )


def create_changes(layout: TableLayout) -> str:
    """Returns the statement that creates the table of changes, if it does not exist."""
    quote, (at,) = layout.dialect.quote, layout.sequence_columns
    parts = [f"{quote(column.name)} {column.stored.type}" for column in layout.columns]
    parts += [f"{quote(AT)} {at.stored.type}", f"{quote(IS_DELETED)} boolean", f"{quote(ARRIVED_AT)} bigint NOT NULL"]
    keys = [quote(column.name) for column in layout.key_columns]
    parts += [f"PRIMARY KEY ({', '.join(keys)})"]
    return f"CREATE TABLE IF NOT EXISTS {layout.changes} ({', '.join(parts)})"


def create_versions(layout: TableLayout, versions: str) -> str:
    """Returns the statement that creates a staging table for the versions of rows."""
    quote = layout.dialect.quote
    parts = [f"{quote(column.name)} {column.stored.type}" for column in layout.stored.columns]
    return f"{layout.dialect.staging} {versions} ({', '.join(parts)})"


def apply_history(layout: TableLayout, staging: str, versions: str, now: int, kept_from: int) -> Iterator[str]:
    """Yields the statements that add the changes of a staging table, whose keys are those of the rows and the sequence,
    and replace the versions of the keys that have changed. `versions` is an empty staging table for them.
    """
    dialect, (at,) = layout.dialect, layout.sequence_columns
    quote, changes = dialect.quote, layout.changes
    names = [quote(column.name) for column in layout.columns]
    values = {column.name: column.stored.sql.format(f"s.{quote(column.name)}") for column in layout.columns}
    same = " AND ".join(f"{changes}.{quote(key.name)} = {values[key.name]}" for key in layout.key_columns)
    yield f"DELETE FROM {changes} WHERE EXISTS (SELECT 1 FROM {staging} AS s WHERE {same})"
    deleted = f"s.{quote(IS_DELETED)}" if layout.deletes else "false"
    added = [*values.values(), values[at.name], deleted, str(now)]
    into = ", ".join([*names, quote(AT), quote(IS_DELETED), quote(ARRIVED_AT)])
    yield f"INSERT INTO {changes} ({into}) SELECT {', '.join(added)} FROM {staging} AS s"
    row_keys = [column for column in layout.key_columns if column.name != at.name]
    keys = ", ".join(f"{values[key.name]} AS {quote(key.name)}" for key in row_keys)
    asked = f"(SELECT DISTINCT {keys} FROM {staging} AS s)"
    tracked = {name.lower() for name in layout.tracked or ()}
    history = RowHistory(
        keys=tuple(quote(column.name) for column in row_keys),
        columns=tuple(names),
        tracked=tuple(quote(column.name) for column in layout.columns if column.name.lower() in tracked),
        **{name: quote(column) for name, column in NAMES.items()},
        differs=dialect.differs,
        exact=dialect.exact if at.is_text else "{}",
    )
    stored = ", ".join(quote(column.name) for column in layout.stored.columns)
    yield f"INSERT INTO {versions} ({stored}) {history.versions(history.changes(changes, layout.table, asked))}"
    same = " AND ".join(f"k.{quote(key.name)} = {layout.table}.{quote(key.name)}" for key in row_keys)
    yield f"DELETE FROM {layout.table} WHERE EXISTS (SELECT 1 FROM {asked} AS k WHERE {same})"
    yield f"INSERT INTO {layout.table} ({stored}) SELECT {stored} FROM {versions}"
    yield f"DELETE FROM {changes} WHERE {quote(ARRIVED_AT)} < {kept_from}"


@dataclass(frozen=True)
class BatchRecord:
    """The record of the last batch of a query in a database. `schema` is the prefix of quoted names, empty for the
    default schema. `output` is the plain name of the table that the query writes, empty if it is not recorded.
    """

    dialect: Dialect
    query_id: str
    schema: str = ""
    output: str = ""

    @property
    def table(self) -> str:
        """The table of records, quoted."""
        return self.schema + self.dialect.quote(BATCHES)

    @property
    def _query(self) -> str:
        return _text(self.query_id)

    @property
    def create(self) -> str:
        """The statement that creates the table of records, if it does not exist."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table} (query_id varchar(64) NOT NULL PRIMARY KEY, "
            f"batch_id bigint NOT NULL, model {self.dialect.text}, applied_at timestamp DEFAULT CURRENT_TIMESTAMP, "
            f"{OUTPUT_COLUMN} {self.dialect.text})"
        )

    @property
    def add_output(self) -> str:
        """The statement that adds the column of output tables to a table of records without it."""
        return f"ALTER TABLE {self.table} ADD COLUMN {OUTPUT_COLUMN} {self.dialect.text}"

    def find_others(self, models: Collection[str], *, has_outputs: bool) -> str:
        """Returns the query for the batches that other queries have applied to the table `output`: their query_id,
        model and last batch. Records without an output, from earlier versions of sqlstream, count by the names of
        models. `has_outputs`: the table of records has the column of output tables.
        """
        named = f"model IN ({', '.join(map(_text, models))})"
        if has_outputs:
            named = f"({OUTPUT_COLUMN} = {_text(self.output)} OR {OUTPUT_COLUMN} IS NULL AND {named})"
        others = f"batch_id >= 0 AND query_id <> {self._query} AND {named}"
        return f"SELECT query_id, model, batch_id FROM {self.table} WHERE {others} ORDER BY applied_at DESC, query_id"

    def forget(self, query_ids: Iterable[str]) -> str:
        """Returns the statement that removes the records of other queries."""
        return f"DELETE FROM {self.table} WHERE query_id IN ({', '.join(map(_text, query_ids))})"

    @property
    def find(self) -> str:
        """The query for the last batch, without a lock."""
        return f"SELECT batch_id FROM {self.table} WHERE query_id = {self._query}"

    def lock(self, model: str) -> Sequence[str]:
        """Returns the statement that adds the record if it is missing, and the query for the last batch (-1: none),
        which locks the record until the transaction ends.
        """
        dialect = self.dialect
        values = f"({self._query}, -1, {_text(model)})"
        new = f"{dialect.insert_new} {self.table} (query_id, batch_id, model) VALUES {values}"
        return (new + dialect.ignore, self.find + dialect.for_update)

    def update(self, batch: int) -> str:
        """Returns the statement that records `batch`."""
        changes = f"batch_id = {batch}, applied_at = CURRENT_TIMESTAMP"
        changes += f", {OUTPUT_COLUMN} = {_text(self.output)}" if self.output else ""
        return f"UPDATE {self.table} SET {changes} WHERE query_id = {self._query}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
