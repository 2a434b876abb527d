"""Compares expected rows with actual ones: which are the same, changed, missing or unexpected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlstream.project.types.parser import known_type
from sqlstream.project.types.types import Array, DataType, Map, Primitive, Struct
from sqlstream.state.runs.unit_tests import ANY, ComparedRow, Row, RowKind, Value


@dataclass(frozen=True)
class RowComparison:
    """Compares rows with columns of `types`. Floats are equal if they differ by at most `tolerance` of the larger."""

    types: tuple[DataType, ...]
    tolerance: Decimal
    ordered: bool = False

    def compare(self, expected: Sequence[Row], actual: Sequence[Row]) -> tuple[ComparedRow, ...]:
        """Returns all rows: first in the order of the expected rows, then the unexpected ones. `ANY` equals any value.

        If the order does not matter, rows are paired with equal rows first, and then with the most similar ones.
        """
        if self.ordered:
            return self._by_position(expected, actual)
        pairs = self._equal_pairs(expected, actual)
        free = dict.fromkeys(at for at in range(len(actual)) if at not in pairs.values())
        pairs |= self._most_similar(expected, actual, pairs, free)
        return self._compared(expected, actual, pairs)

    def _equal_pairs(self, expected: Sequence[Row], actual: Sequence[Row]) -> dict[int, int]:
        """Returns the largest possible set of pairs of equal rows (Kuhn's matching algorithm). A row with `ANY`, which
        may equal several rows, moves to another one if a complete row needs its partner.
        """
        taken: dict[int, int] = {}

        def pair(number: int, seen: set[int]) -> bool:
            for at, row in enumerate(actual):
                if at in seen or self.changed(expected[number], row):
                    continue
                seen.add(at)
                if at not in taken or (ANY in expected[taken[at]] and pair(taken[at], seen)):
                    taken[at] = number
                    return True
            return False

        for number in range(len(expected)):
            pair(number, set())
        return {number: at for at, number in taken.items()}

    def changed(self, expected: Row, actual: Row) -> frozenset[int]:
        """Returns the indexes of the columns in which two rows differ."""
        found = zip(expected, actual, self.types, strict=True)
        return frozenset(at for at, (one, other, kind) in enumerate(found) if not self.equal(one, other, kind))

    def equal(self, one: Value, other: Value, kind: DataType) -> bool:
        """Whether two values of one type are equal. Null equals only null."""
        if one is ANY or other is ANY:
            return True
        if one is None or other is None:
            return one is other
        if isinstance(kind, Primitive) and kind.name in ("float", "double"):
            return self._close(one, other)
        if isinstance(kind, Array) and isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self.equal, one, other, [kind.element] * len(one)))
        if isinstance(kind, Map) and isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self.equal(one[key], other[key], kind.value) for key in one)
        if isinstance(kind, Struct) and isinstance(one, dict) and isinstance(other, dict):
            return all(self.equal(one.get(field.name), other.get(field.name), field.type) for field in kind.fields)
        return one == other and isinstance(one, bool) == isinstance(other, bool)

    def _close(self, one: Value, other: Value) -> bool:
        if not isinstance(one, Decimal | int) or not isinstance(other, Decimal | int):
            return one == other  # NaN and the infinities are text
        first, second = Decimal(one), Decimal(other)
        return abs(first - second) <= self.tolerance * max(abs(first), abs(second))

    def _most_similar(
        self, expected: Sequence[Row], actual: Sequence[Row], pairs: dict[int, int], free: dict[int, None]
    ) -> dict[int, int]:
        """Pairs the remaining rows that have more than a third of their columns in common, the most similar first."""
        left = [number for number in range(len(expected)) if number not in pairs]
        changes = {(number, at): sorted(self.changed(expected[number], actual[at])) for number in left for at in free}
        # the first columns usually identify a row, so differences in them count more
        ranked = sorted((len(changed), [-column for column in changed], *pair) for pair, changed in changes.items())
        found: dict[int, int] = {}
        for different, _, number, at in ranked:
            same = len(self.types) - different
            if number not in found and at not in found.values() and same * 3 > len(self.types):
                found[number] = at
        return found

    def _compared(
        self, expected: Sequence[Row], actual: Sequence[Row], pairs: dict[int, int]
    ) -> tuple[ComparedRow, ...]:
        rows = [
            self._pair(row, actual[pairs[number]]) if number in pairs else ComparedRow(RowKind.MISSING, row, None)
            for number, row in enumerate(expected)
        ]
        taken = set(pairs.values())
        extra = [ComparedRow(RowKind.EXTRA, None, row) for at, row in enumerate(actual) if at not in taken]
        return (*rows, *extra)

    def _by_position(self, expected: Sequence[Row], actual: Sequence[Row]) -> tuple[ComparedRow, ...]:
        both = min(len(expected), len(actual))
        return self._compared(expected, actual, {at: at for at in range(both)})

    def _pair(self, expected: Row, actual: Row) -> ComparedRow:
        changed = self.changed(expected, actual)
        return ComparedRow(RowKind.CHANGED if changed else RowKind.SAME, expected, actual, changed)


def types_of(columns: Sequence[tuple[str, str]]) -> tuple[DataType, ...]:
    """Returns the types of columns, given as names and Spark's catalog strings."""
    return tuple(known_type(text) for _, text in columns)
