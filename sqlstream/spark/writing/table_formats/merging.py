"""The MERGE of a batch into a table of Delta Lake or Iceberg, and the deleted keys of a table, in a table beside it, so
that a row which is older than the deletion does not bring its key back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from sqlstream.compiler.digest import digest
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.databases.statements import DELETED_AT, TOMBSTONES, is_listed
from sqlstream.spark.writing.micro_batches import column_of
from sqlstream.spark.writing.table_formats.table import FormatTable, table_at
from sqlstream.state.ledger import OutputColumn

DELETES = "__sqlstream_deletes"
"""The column of a batch that marks rows which delete the row with their key."""

VIEW = "sqlstream_deletes"
"""The temp view of the deletes of a batch, in the session of its query."""


@dataclass(frozen=True)
class Tombstones:
    """The deleted keys of `table`, each with the `sequence` of its last deletion, kept for some `seconds`. `keys` and
    `sequence` are columns of the table.
    """

    table: FormatTable
    keys: Sequence[str]
    sequence: Sequence[str]
    seconds: float

    @property
    def _stored(self) -> FormatTable:
        """The table of deleted keys. Other keys, or another sequence, have a table of their own."""
        return table_beside(self.table, TOMBSTONES, (*self.keys, "", *self.sequence))

    def prepare(self) -> None:
        """Creates the table of deleted keys, or gives its columns the wider types of the table.

        Raises: Spark's errors.
        """
        types, stored = {column.name: column for column in self.table.columns() or ()}, self._stored
        columns = [types[name] for name in self._names]
        if stored.exists():
            stored.widen(columns)
        else:
            stored.create([*columns, OutputColumn(DELETED_AT, "bigint")], (), {})

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys((*self.keys, *self.sequence)))

    def add(self, deletes: DataFrame) -> None:
        """Adds the keys of rows that delete them, and forgets those whose time is over. Rows that it has already change
        nothing. Raises: Spark's errors.
        """
        if deletes.isEmpty():
            return
        now = int(time.time())
        rows = deletes.select(*map(column_of, self._names))
        rows.withColumn(DELETED_AT, lit(now).cast("bigint")).createOrReplaceTempView(VIEW)
        columns, forget = (*self._names, DELETED_AT), f"target.{DELETED_AT} < {now - int(self.seconds)}"
        stored = self._stored.name
        merge = merge_sql(stored, VIEW, columns, self.keys, columns, self.sequence, deletes=False, forget=forget)
        self.table.session.sql(merge)

    def newer_rows(self, view: str) -> str:
        """Returns the query for the rows of `view` that are not older than the deletion of their key. Rows that delete
        are among them. It is text, because Spark 4.1 cannot plan a temp view that reads an Iceberg table in a MERGE.
        """
        kept = f"source.{DELETES} OR target.{DELETED_AT} IS NULL OR {not_older(self.sequence)}"
        join = f"{view} AS source LEFT JOIN {self._stored.name} AS target ON {same_keys(self.keys)}"
        return f"(SELECT source.* FROM {join} WHERE {kept})"


def table_beside(table: FormatTable, start: str, columns: Sequence[str]) -> FormatTable:
    """Returns the table that is beside another one for its `columns`: in the folder `start` beside its path, or with a
    name that begins with `start` in its schema.
    """
    shape = digest([name.lower() for name in columns])[:12]
    if table.path is not None:
        parent, _, name = table.path.rpartition("/")
        return table_at(table.session, table.format, path=f"{parent}/{start}/{name}_{shape}")
    parent, _, name = table.name.rpartition(".")
    named = quote_identifier(f"{start}_{name.strip('`')}_{shape}", always=True)
    return FormatTable(table.session, table.format, f"{parent}.{named}" if parent else named)


def same_keys(keys: Sequence[str]) -> str:
    """Returns the condition in SQL that `source` and `target` have the same key. Two nulls are the same."""
    names = [quote_identifier(key, always=True) for key in keys]
    return " AND ".join(f"target.{name} <=> source.{name}" for name in names)


def not_older(sequence: Sequence[str]) -> str:
    """Returns the condition in SQL that the sequence of `source` is not lower than that of `target`, where a null is
    lower than every value.
    """
    names = [quote_identifier(name, always=True) for name in sequence]
    source, target = (", ".join(f"{side}.{name}" for name in names) for side in ("source", "target"))
    return f"struct({source}) >= struct({target})"


def spelled(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Returns the columns with `names`, which can be in another letter case."""
    known = {column.lower(): column for column in columns}
    return [known[name.lower()] for name in names]


def merge_sql(
    table: str,
    source: str,
    columns: Sequence[str],
    keys: Sequence[str],
    written: Sequence[str],
    sequence: Sequence[str] = (),
    *,
    deletes: bool = True,
    forget: str = "",
    unavailable: str = "",
) -> str:
    """Returns the MERGE of `source`, a view or a query, into `table`, both with `columns`. With `deletes`, `source`
    also has the column of that name.

    `written` are the columns of the query: an update leaves the others as they are. A null in a key is a value like
    any other. `source` must have each key once. A row of the table with a higher `sequence` stays. Rows of
    the table without one in `source` go if they meet the condition `forget`. The column `unavailable` of `source` lists
    those whose value the table keeps.
    """
    names = {name.lower(): quote_identifier(name, always=True) for name in columns}
    is_later = f" AND {not_older(spelled(sequence, columns))}" if sequence else ""
    fixed = {name.lower() for name in (*keys, *sequence, unavailable)}
    values = {name.lower(): f"source.{names[name.lower()]}" for name in written}
    for name in (values.keys() - fixed) if unavailable else ():
        is_kept = is_listed(name, f"source.{names[unavailable.lower()]}")
        values[name] = f"CASE WHEN {is_kept} THEN target.{names[name]} ELSE {values[name]} END"
    updates = ", ".join(f"{names[name]} = {value}" for name, value in values.items())
    new = ", ".join(f"source.{name}" for name in names.values())
    added = f"({', '.join(names.values())}) VALUES ({new})"
    # the first clause that applies counts: a deletion before the update. A deleted key that is not there adds no row.
    clauses = (
        f"MERGE INTO {table} AS target USING {source} AS source ON {same_keys(spelled(keys, columns))}",
        f"WHEN MATCHED AND source.{DELETES}{is_later} THEN DELETE" if deletes else "",
        f"WHEN MATCHED{is_later} THEN UPDATE SET {updates}",
        f"WHEN NOT MATCHED{f' AND NOT source.{DELETES}' if deletes else ''} THEN INSERT {added}",
        f"WHEN NOT MATCHED BY SOURCE AND {forget} THEN DELETE" if forget else "",
    )
    return "\n".join(filter(None, clauses))
