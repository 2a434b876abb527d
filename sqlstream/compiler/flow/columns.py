"""The columns of an operator's output as frozen values: type, watermark and origins.

Anything that only Spark can know is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.types.data_types import DataType


@dataclass(frozen=True)
class EventTime:
    """The watermark of a column: its delay as written, and the place of its declaration (None: in the source)."""

    delay: str
    where: Where | None


@dataclass(frozen=True)
class LostWatermark:
    """The expression that loses the watermark of `column`: its place and its text."""

    where: Where
    expression: str
    column: str


@dataclass(frozen=True)
class InnerWatermarks:
    """The watermarks inside a value.

    For a struct, `fields` are (name in lower case, its watermark, the watermarks inside it). For an array, `elements`
    are those inside each element; for a map, `values` are those inside each value. `is_known` is False if there may be
    unknown ones.
    """

    fields: tuple[tuple[str, EventTime | None, InnerWatermarks], ...] = ()
    elements: InnerWatermarks | None = None
    values: InnerWatermarks | None = None
    is_known: bool = True


NO_INNER = InnerWatermarks()


@dataclass(frozen=True)
class Column:
    """One column of an operator's output.

    `type` is None if it is unknown. `event_time` is its watermark. `lost` is the reason why it has none although it is
    computed from a column with one. `origins` are the (node id, column) of the sources, seeds or static tables
    from which it is computed. `window` is the call that makes a time window or its time, empty for other columns.
    `inner` are the watermarks inside the value. `may_carry` is True if the column may have an unknown watermark.
    `path` is the source, its column and field whose value the column has, without the field for the whole column; it is
    empty for other columns. `may_lack` is True if it is computed from a value that a change event of Debezium may not
    have. `is_generated` is True if Spark generates the name and `name` may differ from it. `is_respelled` is True if a
    name without AS refers to it in another letter case.
    """

    name: str
    type: DataType | None = None
    event_time: EventTime | None = None
    lost: LostWatermark | None = None
    origins: frozenset[tuple[str, str]] = frozenset()
    window: str = ""
    inner: InnerWatermarks = NO_INNER
    may_carry: bool = False
    path: tuple[str, ...] = field(default=(), compare=False)
    may_lack: bool = field(default=False, compare=False)
    is_generated: bool = False
    is_respelled: bool = field(default=False, compare=False)

    @property
    def in_sql(self) -> str:
        """The name in SQL, in back-quotes if it needs them."""
        return quote_identifier(self.name)

    def called(self, name: str) -> Column:
        """Returns the column with the name `name` that the query gives it."""
        return replace(self, name=name, is_generated=False, is_respelled=False)

    def respelled(self, name: str) -> Column:
        """Returns the column as `name` refers to it. For Spark it is the same attribute, unlike one with an alias."""
        return self if self.name == name else replace(self, name=name, is_generated=False, is_respelled=True)

    def may_be(self, other: Column) -> bool:
        """Returns whether two columns of one name may be the same attribute, as in `select a, a` and `select a, A`."""
        is_other = self.origins and other.origins and self.origins.isdisjoint(other.origins)
        return self is other or ((self.is_respelled or other.is_respelled) and self.type == other.type and not is_other)

    def may_be_called(self, name: str) -> bool:
        """Returns whether Spark may generate the name `name` for it: `(a + 1)`, `max(a)`, but no plain name."""
        return self.is_generated and not name.isidentifier()


Columns = tuple[Column, ...]


def renamed(columns: Columns | None, names: Sequence[str]) -> Columns | None:
    """Returns `columns` with `names`, as in `t(a, b)`. If the numbers differ, only the names are known."""
    if not names:
        return columns
    if columns is None or len(columns) != len(names):
        return tuple(map(Column, names))
    return tuple(column.called(name) for column, name in zip(columns, names, strict=True))
