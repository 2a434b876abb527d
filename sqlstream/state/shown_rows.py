"""The first rows of a model, seed or source, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ShownColumn:
    """A column's name, and its type in Spark's DDL."""

    name: str
    data_type: str


@dataclass(frozen=True)
class ShownRows:
    """The first rows of a node: `rows` are JSON values, one for each column, with all digits of numbers. Dates and
    times are text in the session's time zone, bytes are text in base 64. `limit` is the maximum number of rows.
    """

    name: str
    unique_id: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[object, ...], ...]
    limit: int

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than these."""
        return len(self.rows) == self.limit
