"""The columns of an operator's output as frozen values: type, watermark, and what each is made from.

What cannot be known without Spark is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.project.types.types import DataType


@dataclass(frozen=True)
class Where:
    """A place in compiled SQL: the model's unique id, and an offset in characters from 0."""

    model: str
    offset: int


@dataclass(frozen=True)
class EventTime:
    """The watermark of a column: its delay as written, and where it is declared (None: by the source)."""

    delay: str
    where: Where | None


@dataclass(frozen=True)
class LostWatermark:
    """Where a column stopped carrying the watermark that it is made from: the expression's place and its text."""

    where: Where
    expression: str
    column: str


@dataclass(frozen=True)
class HeldWatermarks:
    """The watermarks within a value: of a struct by `fields`, as (name in lower case, its watermark, what it holds
    itself); of an array by what each of its `elements` holds, of a map by its `values`.

    `is_known` is False where it may hold some that are not known.
    """

    fields: tuple[tuple[str, EventTime | None, HeldWatermarks], ...] = ()
    elements: HeldWatermarks | None = None
    values: HeldWatermarks | None = None
    is_known: bool = True


NOTHING_HELD = HeldWatermarks()


@dataclass(frozen=True)
class Column:
    """One column of an operator's output.

    `type` is None where it is not known. `event_time` is the watermark that it carries. `lost` says why it carries
    none although it is made from a column that does. `origins` are the columns of sources, seeds or static tables it
    is made from, as (node id, column). `window` says that it is a time window's struct. `held` are the watermarks
    within it, on fields of structs. `may_carry` says that it may itself carry one that is not known.
    """

    name: str
    type: DataType | None = None
    event_time: EventTime | None = None
    lost: LostWatermark | None = None
    origins: frozenset[tuple[str, str]] = frozenset()
    window: bool = False
    held: HeldWatermarks = NOTHING_HELD
    may_carry: bool = False

    @property
    def in_sql(self) -> str:
        """The name as SQL has it, in back-quotes where it needs them."""
        return quote_identifier(self.name)


Columns = tuple[Column, ...]


def renamed(columns: Columns | None, names: Sequence[str]) -> Columns | None:
    """Returns `columns` under `names`, as in `t(a, b)`; only the names are known where they are not as many."""
    if not names:
        return columns
    if columns is None or len(columns) != len(names):
        return tuple(map(Column, names))
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))
