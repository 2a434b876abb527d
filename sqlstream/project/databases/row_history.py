"""The versions of each row over time (SCD type 2), as SQL for databases and for Spark.

A table of changes beside the table has the changes of each key in any order. The versions of a key follow from all of
its changes, so a change that arrives late splits the version in which it falls. Changes are forgotten after a time.
Then the version that one of them has begun, and the deletion that has ended it, are taken from the table itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"
"""The columns that a table with a history has beside those of the model."""

CHANGES = "_sqlstream_changes"
"""The start of the names of tables of changes; for a table with a path, the folder beside it that has them."""

AT, IS_DELETED = "_sqlstream_at", "_sqlstream_is_deleted"
"""The columns of a change: its position in the order of its key, and whether it deletes the key."""

ARRIVED_AT = "_sqlstream_arrived_at"
"""The column of a change with the time of its batch, in seconds since 1970, after which it is forgotten some day."""

NAMES = {
    "at": AT,
    "is_deleted": IS_DELETED,
    "valid_from": VALID_FROM,
    "valid_to": VALID_TO,
    "is_current": IS_CURRENT,
}
"""The names of these columns, by the fields of `RowHistory`."""


@dataclass(frozen=True)
class RowHistory:
    """The history of a table; all names are quoted. `columns` are those of the model, among them the `keys`, and
    `tracked` the ones whose change begins a version. `at`, `is_deleted` and so on are the names above.

    `differs` is the comparison of two values, in which two nulls are equal, `exact` the form of a value in an order,
    and `same` the comparison of keys.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    tracked: tuple[str, ...]
    at: str
    is_deleted: str
    valid_from: str
    valid_to: str
    is_current: str
    differs: str
    exact: str = "{}"
    same: str = "{} = {}"

    def changes(self, changes: str, table: str, keys: str) -> str:
        """Returns the query for all known changes of the keys in the relation `keys`. `changes` is the table of
        changes, and `table` has the versions so far. Its columns are those of the model, `at` and `is_deleted`.
        """
        listed = ", ".join(f"c.{name}" for name in self.columns)
        begun = ", ".join(f"t.{name}" for name in self.columns)
        is_asked_c, is_asked_t = (f"EXISTS (SELECT 1 FROM {keys} AS k WHERE {self._same('k', x)})" for x in "ct")
        known = f"SELECT 1 FROM {changes} AS c WHERE {self._same('c', 't')} AND c.{self.at} = t."
        follows = f"SELECT 1 FROM {table} AS n WHERE {self._same('n', 't')} AND n.{self.valid_from} = t.{self.valid_to}"
        forgotten = f"FROM {table} AS t WHERE {is_asked_t} AND NOT EXISTS ({known}"
        return (
            f"SELECT {listed}, c.{self.at}, c.{self.is_deleted} FROM {changes} AS c WHERE {is_asked_c}"
            f" UNION ALL SELECT {begun}, t.{self.valid_from}, false {forgotten}{self.valid_from})"
            f" UNION ALL SELECT {begun}, t.{self.valid_to}, true {forgotten}{self.valid_to})"
            f" AND t.{self.valid_to} IS NOT NULL AND NOT EXISTS ({follows})"
        )

    def versions(self, changes: str) -> str:
        """Returns the query for the versions that follow from the query `changes`: the columns of the table."""
        order = f"PARTITION BY {_listed(self.keys)} ORDER BY {self.exact.format(self.at)}"
        before = f"LAG({self.is_deleted}) OVER ({order})"
        differ = [self.differs.format(name, f"LAG({name}) OVER ({order})") for name in self.tracked] or ["false"]
        starts = (
            f"CASE WHEN {before} IS NULL THEN 1 WHEN {self.is_deleted} AND {before} THEN 0 "
            f"WHEN {self.is_deleted} OR {before} OR {' OR '.join(differ)} THEN 1 ELSE 0 END"
        )
        version = f"PARTITION BY {_listed(self.keys)}, _sqlstream_version"
        names = _listed((*self.columns, self.at, self.is_deleted))
        marked = f"SELECT {names}, {starts} AS _sqlstream_starts FROM ({changes}) AS c"
        numbered = (
            f"SELECT {names}, SUM(_sqlstream_starts) OVER ({order} ROWS UNBOUNDED PRECEDING) AS _sqlstream_version "
            f"FROM ({marked}) AS m"
        )
        latest = (
            f"SELECT {names}, _sqlstream_version, FIRST_VALUE({self.at}) OVER ({version} ORDER BY "
            f"{self.exact.format(self.at)}) AS {self.valid_from}, ROW_NUMBER() OVER ({version} ORDER BY "
            f"{self.exact.format(self.at)} DESC) AS _sqlstream_nth FROM ({numbered}) AS n"
        )
        ended = (
            f"SELECT {names}, {self.valid_from}, LEAD({self.valid_from}) OVER (PARTITION BY {_listed(self.keys)} "
            f"ORDER BY _sqlstream_version) AS {self.valid_to} FROM ({latest}) AS l WHERE _sqlstream_nth = 1"
        )
        return (
            f"SELECT {_listed(self.columns)}, {self.valid_from}, {self.valid_to}, "
            f"CASE WHEN {self.valid_to} IS NULL THEN true ELSE false END AS {self.is_current} "
            f"FROM ({ended}) AS e WHERE NOT {self.is_deleted}"
        )

    def _same(self, one: str, other: str) -> str:
        return " AND ".join(self.same.format(f"{one}.{key}", f"{other}.{key}") for key in self.keys)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
