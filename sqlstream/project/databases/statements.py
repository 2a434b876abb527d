"""The SQL statements that create tables and apply a micro-batch from a staging table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlstream.project.databases.dialect import BATCHES, Dialect, Stored

IS_DELETED = "_sqlstream_is_deleted"
"""The staging column that marks rows which delete their key."""

OUTPUT_COLUMN = "output_table"
"""The column of the table of records with the plain name of the table that a query writes: its versions share it."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of a table, and how the database stores it."""

    name: str
    stored: Stored


@dataclass(frozen=True)
class TableLayout:
    """The table of a query: its quoted name, its columns, and the names of its key columns.

    With `deletes`, the staging table marks rows that delete their key.
    """

    dialect: Dialect
    table: str
    columns: tuple[StoredColumn, ...]
    keys: tuple[str, ...]
    deletes: bool = False

    @property
    def key_columns(self) -> tuple[StoredColumn, ...]:
        """The key columns, in the order of the keys."""
        by_name = {column.name.lower(): column for column in self.columns}
        return tuple(by_name[key.lower()] for key in self.keys)


def create_table(layout: TableLayout) -> str:
    """Returns the statement that creates the table, with its key as the primary key."""
    quote = layout.dialect.quote
    keys = [quote(column.name) for column in layout.key_columns]
    parts = [f"{quote(column.name)} {column.stored.type}" for column in layout.columns]
    parts += [f"PRIMARY KEY ({', '.join(keys)})"] if keys else []
    return f"CREATE TABLE {layout.table} ({', '.join(parts)})"


def create_staging(layout: TableLayout, staging: str) -> str:
    """Returns the statement that creates a staging table for the rows of one batch."""
    quote = layout.dialect.quote
    parts = [f"{quote(column.name)} {column.stored.staging_type}" for column in layout.columns]
    parts += [f"{quote(IS_DELETED)} boolean"] if layout.deletes else []
    return f"{layout.dialect.staging} {staging} ({', '.join(parts)})"


def staged_rows(layout: TableLayout, delete_when: str | None) -> list[str]:
    """Returns the Spark SQL expressions of a staging row."""
    names = [(f"`{column.name.replace('`', '``')}`", column.stored.spark) for column in layout.columns]
    rows = [f"{template.format(name)} as {name}" for name, template in names]
    return [*rows, f"coalesce(({delete_when}), false) as {IS_DELETED}"] if layout.deletes else rows


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
