"""What a whole selection is made of: criteria in unions, intersections and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstream.compiler.selection.criteria import Criterion, parse_criterion, split_union


@dataclass(frozen=True)
class Union:
    """The nodes of any part; none where there is no part."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True)
class Intersection:
    """The nodes that all parts have."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True)
class Difference:
    """The nodes of `base` that `removed` does not have."""

    base: Selection
    removed: Selection


Selection = Criterion | Union | Intersection | Difference


def parse_selectors(selectors: Sequence[str]) -> Union:
    """Returns the selection that flags give: spaces in them mean or, commas and.

    Raises: SelectorError for the first criterion that cannot be read.
    """
    words = (tuple(parse_criterion(part) for part in parts) for parts in split_union(selectors))
    return Union(tuple(Intersection(word) for word in words))


def criteria_of(selection: Selection) -> Iterator[Criterion]:
    """Gives the criteria of a selection in the order in which they are written."""
    if isinstance(selection, Criterion):
        yield selection
    else:
        for part in parts_of(selection):
            yield from criteria_of(part)


def parts_of(selection: Union | Intersection | Difference) -> tuple[Selection, ...]:
    """Returns the selections that a selection is made of."""
    return (selection.base, selection.removed) if isinstance(selection, Difference) else selection.parts
