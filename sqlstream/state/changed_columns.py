"""How the output columns of a query differ from those that it wrote before, in any sink, and what the difference
breaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


NOT_NULL_TEXT = " not null"
"""The end of a column of a contract that allows no null."""


def contract_breaks(old: QueryIdentity | None, new: QueryIdentity) -> tuple[str, ...]:
    """Returns the changes of an enforced contract on which readers may rely: removed columns, other types, nulls that
    it allows now, and another order. New columns break nothing.
    """
    before = old.contract if old is not None else None
    return tuple(_contract_breaks(before, new)) if before else ()


def _contract_breaks(before: Mapping[str, str], new: QueryIdentity) -> Iterator[str]:
    if not new.contract:
        yield "it is no longer enforced"
        return
    sides = [
        [OutputColumn(name, text.removesuffix(NOT_NULL_TEXT)) for name, text in each.items()]
        for each in (before, new.contract)
    ]
    yield from (each.text for each in column_differences(*sides) if each.breaks_readers)
    after = {name.lower(): text for name, text in new.contract.items()}
    common = [name for name in before if name.lower() in after]
    for name in common:
        if before[name].endswith(NOT_NULL_TEXT) and not after[name.lower()].endswith(NOT_NULL_TEXT):
            yield f"column `{name}` can be null"
    kept = {name.lower() for name in common}
    now = [name for name in after if name in kept]
    if [name.lower() for name in common] != now:
        yield f"its columns had the order {', '.join(common)}, and now have {', '.join(now)}"


class BreakKind(StrEnum):
    """What breaks."""

    CONTRACT = "contract"
    MODEL = "model"
    SINK = "sink"
    EXPOSURE = "exposure"


@dataclass(frozen=True)
class Break:
    """The contract of a changed query, or a model, sink or exposure downstream: its name, and why it may break. `owner`
    is the name or the email address of the owner of an exposure.
    """

    kind: BreakKind
    name: str
    reason: str
    owner: str | None = None
