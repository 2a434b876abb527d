"""What differs between databases, as frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlstream.project.types.data_types import DataType, Decimal, type_name

BATCHES = "_sqlstream_batches"
"""The table with the last batch of each query that a database has applied."""

AS_JSON = frozenset({"array", "map", "struct", "variant"})
"""Types that databases store as JSON text."""

UNSTORED = frozenset({"geometry", "geography", "time"})
"""Types that no sink of a database stores."""


@dataclass(frozen=True)
class Stored:
    """How a database stores the values of one type.

    Spark computes `spark` from a column and writes it to a staging column of type `staged`. The database computes `sql`
    from the staging column and stores it as `type`. To read it back, the database computes `read`, which Spark casts to
    its type. `{}` is replaced by the column. `accepts` are other types of an existing column that hold every value, in
    lower case. `digits` are the decimal digits before and after the point.
    """

    type: str
    staged: str = ""
    spark: str = "{}"
    sql: str = "{}"
    accepts: frozenset[str] = frozenset()
    digits: tuple[int, int] = (0, 0)
    read: str = "{}"

    @property
    def staging_type(self) -> str:
        """The type of the staging column."""
        return self.staged or self.type


@dataclass(frozen=True)
class Dialect:
    """The SQL of one database.

    `store` returns how a column of a type is stored, None if the database cannot store it; its second argument says
    whether the column is part of the key. `on_conflict` returns the end of an INSERT that replaces rows, for the quoted
    key columns and the other quoted columns. `delete` returns the DELETE of the rows whose keys a staging table marks
    as deleted; its keys are pairs of a quoted column and the SQL of its value in the staging table `s`. `add_key`
    returns the statement that makes columns of a table unique, `change_type` the one that changes the type of a column,
    None if the database has none. `staging` is the start of the statement that creates a staging table. `insert_new` is
    the start of an INSERT that ignores an existing key, and `ignore` is its end. `session` sets up a session: a
    statement waits a minute for a lock. `driver` is the class of the JDBC driver, `bulk_options` are its options for
    writing many rows at once, `timeouts` those with which a connection gives up in seconds. `unique_columns` returns
    the query for the unique indexes of a table: a row with the name of the index for each column. `drop_unique` returns
    the statement that drops a unique index, None if `on_conflict` only replaces rows with the same key: in MySQL it
    does so for every unique index. `longest_name` is the number of bytes after which the database cuts a name without
    an error, 0 if it does not. `exact` makes the comparison of a text one of bytes, as in
    Spark. `differs` compares two values, of which two nulls are equal. `tables_beside` returns the query for the names
    of the tables in the schema of a table that start with a text, None if staging tables end with their connection.
    """

    name: str
    title: str
    quote_mark: str
    store: Callable[[DataType, bool], Stored | None]
    on_conflict: Callable[[list[str], list[str]], str]
    delete: Callable[[str, str, list[tuple[str, str]], str], str]
    add_key: Callable[[str, list[str]], str]
    change_type: Callable[[str, str, str], str] | None
    staging: str
    insert_new: str
    ignore: str = ""
    for_update: str = " FOR UPDATE"
    text: str = "text"
    session: str = ""
    driver: str = ""
    unique_columns: Callable[[str], str] = str
    bulk_options: Mapping[str, str] = field(default_factory=dict)
    timeouts: Mapping[str, str] = field(default_factory=dict)
    drop_unique: Callable[[str, str], str] | None = None
    longest_name: int = 0
    exact: str = "{}"
    differs: str = "{} IS DISTINCT FROM {}"
    tables_beside: Callable[[str, str], str] | None = None

    def keeps_order(self, type_: DataType) -> bool:
        """Returns whether the database compares stored values of a type as Spark compares the values themselves. As
        text, only texts and times of fixed length are in order.
        """
        stored, name = self.store(type_, False), type_family(type_)
        if stored is None or name not in ("interval", "decimal", *AS_JSON):
            return True
        return name == "decimal" and stored.type.lower() != "text"

    def quote(self, name: str) -> str:
        """Returns a name as an identifier."""
        return self.quote_mark + name.replace(self.quote_mark, 2 * self.quote_mark) + self.quote_mark


def type_family(type_: DataType) -> str:
    """Returns the name of a type without its parts, and `interval` for all intervals; empty if unknown."""
    name = type_name(type_)
    return "interval" if name.startswith("interval") else name


def digits_of(type_: Decimal) -> tuple[int, int]:
    """Returns the digits of a decimal before and after the point."""
    return type_.precision - type_.scale, type_.scale


def on_conflict(keys: list[str], others: list[str]) -> str:
    """Returns the end of an INSERT that updates the `others` of a row whose `keys` exist."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f" ON CONFLICT ({', '.join(keys)}) DO " + (f"UPDATE SET {changes}" if others else "NOTHING")


def add_unique_key(table: str, keys: list[str]) -> str:
    """Returns the statement that makes `keys` unique."""
    return f"ALTER TABLE {table} ADD UNIQUE ({', '.join(keys)})"
