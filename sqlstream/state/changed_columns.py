"""How the output columns of a query differ from those that it wrote before, in any sink, and what the difference
breaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlstream.state.ledger import OutputColumn, QueryIdentity


@dataclass(frozen=True)
class ColumnDifference:
    """One difference: the column `before`, None if it is new, and the column `after`, None if it was removed.
    `new_name` is the likely new name of a removed column: that of a new one of the same type at the same position.
    """

    before: OutputColumn | None
    after: OutputColumn | None
    new_name: str | None = None

    @property
    def name(self) -> str:
        """The name before, or that of a new column."""
        column = self.before or self.after
        return "" if column is None else column.name

    @property
    def breaks_readers(self) -> bool:
        """Whether a reader of the column may stop working: not for a new column."""
        return self.before is not None

    @property
    def text(self) -> str:
        """The difference in words."""
        if self.before is None:
            return f"column `{self.name}` is new"
        if self.after is None:
            renamed = f", or renamed to `{self.new_name}`" if self.new_name else ""
            return f"column `{self.name}` was removed{renamed}"
        return f"column `{self.name}` was {self.before.type}, and is now {self.after.type}"


def identity_differences(old: QueryIdentity | None, new: QueryIdentity) -> tuple[ColumnDifference, ...]:
    """Returns the differences between what two versions of a query write; none if the columns of one are unknown."""
    if old is None or old.columns is None or new.columns is None:
        return ()
    return column_differences(old.columns, new.columns)


def column_differences(old: Sequence[OutputColumn], new: Sequence[OutputColumn]) -> tuple[ColumnDifference, ...]:
    """Returns the differences: removed columns and new types in their old order, then new columns. Spark ignores the
    case of names, and so does this.
    """
    return tuple(_differences(old, new))


def _differences(old: Sequence[OutputColumn], new: Sequence[OutputColumn]) -> Iterator[ColumnDifference]:
    before, after = ({column.name.lower(): column for column in side} for side in (old, new))
    for position, column in enumerate(old):
        now = after.get(column.name.lower())
        if now is None:
            there = new[position] if position < len(new) else None
            is_renamed = there is not None and there.name.lower() not in before and there.type == column.type
            yield ColumnDifference(column, None, there.name if there is not None and is_renamed else None)
        elif now.type != column.type:
            yield ColumnDifference(column, now)
    yield from (ColumnDifference(None, column) for key, column in after.items() if key not in before)


class BreakKind(StrEnum):
    """What breaks."""

    MODEL = "model"
    SINK = "sink"
    EXPOSURE = "exposure"


@dataclass(frozen=True)
class Break:
    """A model, sink or exposure downstream of a changed query: its name, and why it may break. `owner` is the name or
    the email address of the owner of an exposure.
    """

    kind: BreakKind
    name: str
    reason: str
    owner: str | None = None
