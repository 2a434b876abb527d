"""Compares the observed result of a case with the expected one: passed or failed, with all differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct
from sqlstream.project.types.ddl import known_type
from sqlstream.state.runs.case_outcomes import (
    ANY,
    CaseResult,
    ComparedRow,
    Observed,
    Outcome,
    Row,
    RowDifference,
    RowKind,
    Value,
    ValueDifference,
)
from sqlstream.testing.cases import Case, data_test_name

NO_ERROR = "no error"

_CAUSES = {
    "late rows dropped": r"\bwatermark\b",
    "watermark": r"\bwatermark\b",
    "state rows": r"\bgroup\s+by\b",
}
"""Patterns for the part of a model that causes a value."""


@dataclass(frozen=True)
class ExpectedResult:
    """The expected result of a case, in the types of the observed one. `final`, `batches` and `table` are rows,
    `watermark` is in ms since 1970; None is not checked. `shown_watermark` is the observed watermark in the session's
    time zone.
    """

    final: tuple[Row, ...] | None
    batches: tuple[tuple[Row, ...], ...] | None
    watermark: int | None
    shown_watermark: str = ""
    table: tuple[Row, ...] | None = None


def result_of(case: Case, outcome: Outcome, findings: Sequence[Finding] = ()) -> CaseResult:
    """Returns the result of a case without differences."""
    test = case.test
    place = case.model.file.location
    return CaseResult(test.name, test.model, test.location, outcome, findings=tuple(findings), model_location=place)


def judge_refusal(case: Case, findings: Sequence[Finding], conditions: Sequence[str] = ()) -> CaseResult:
    """Returns the result of a case whose model is refused before it runs, with `findings`."""
    expected = case.test.expect.document.error
    codes = [*(finding.code for finding in findings), *conditions]
    if expected is None:
        return result_of(case, Outcome.BROKEN, findings)
    if any(_is_error(expected, code) for code in codes):
        return result_of(case, Outcome.PASSED)
    difference = ValueDifference(
        "error", expected, ", ".join(dict.fromkeys(codes)), case.test.expect.locations["error"]
    )
    return replace(result_of(case, Outcome.FAILED, findings), differences=(difference,))


def judge(case: Case, observed: Observed, expected: ExpectedResult) -> CaseResult:
    """Returns the result of a case after its run."""
    if observed.error is not None:
        return _judge_error(case, observed, observed.error)
    differences = tuple(_differences(case, observed, expected))
    result = result_of(case, Outcome.FAILED if differences else Outcome.PASSED)
    place = _model_location(case, differences)
    late = sum(observed.late)
    notes = {"late rows dropped": str(late)} if late else {}
    return replace(result, differences=differences, notes=notes, model_location=place)


def _model_location(case: Case, differences: Sequence[RowDifference | ValueDifference]) -> Location:
    """Returns the line of the model with the first column that differs, or with the cause of a value that differs. If
    there is none, returns the first line.
    """
    for pattern in (pattern for each in differences for pattern in _patterns(each)):
        found = re.search(pattern, case.model.sql, re.IGNORECASE)
        if found and not case.model.file.is_python:
            return case.compiled.locate(case.model.unique_id, found.start()).location
    return case.model.file.location


def _patterns(difference: RowDifference | ValueDifference) -> Iterator[str]:
    if isinstance(difference, ValueDifference):
        yield from filter(None, [_CAUSES.get(difference.what)])
        return
    changed = next((row.changed for row in difference.rows if row.changed), ())
    yield from (rf"\b{re.escape(difference.columns[column])}\b" for column in sorted(changed))


def _judge_error(case: Case, observed: Observed, error: Finding) -> CaseResult:
    expected = case.test.expect.document.error
    if expected is not None and any(_is_error(expected, code) for code in (error.code, *observed.conditions)):
        return result_of(case, Outcome.PASSED)
    result = result_of(case, Outcome.FAILED, (error,))
    if expected is None:
        return result
    actual = ", ".join(observed.conditions) or error.code
    return replace(
        result, differences=(ValueDifference("error", expected, actual, case.test.expect.locations["error"]),)
    )


def _is_error(expected: str, code: str) -> bool:
    """Whether `code` is the expected code or condition, or one of its subconditions (`A.B` of `A`)."""
    return code == expected or code.startswith(f"{expected}.")


def _differences(case: Case, observed: Observed, expected: ExpectedResult) -> Iterator[RowDifference | ValueDifference]:
    document, places = case.test.expect.document, case.test.expect.locations
    if document.error is not None:
        yield ValueDifference("error", document.error, NO_ERROR, places["error"])
    comparison = RowComparison(types_of(observed.columns), Decimal(repr(document.tolerance)), document.ordered)
    yield from _row_differences(case, observed, expected, comparison)
    late = sum(observed.late)
    if document.late_rows_dropped not in (None, late):
        yield ValueDifference(
            "late rows dropped", str(document.late_rows_dropped), str(late), places["late_rows_dropped"]
        )
    if expected.watermark is not None and expected.watermark != observed.watermark:
        yield ValueDifference("watermark", document.watermark or "", expected.shown_watermark, places["watermark"])
    yield from _violations(case, observed)
    if document.state_rows not in (None, observed.state_rows):
        yield ValueDifference("state rows", str(document.state_rows), str(observed.state_rows), places["state_rows"])


def _violations(case: Case, observed: Observed) -> Iterator[ValueDifference]:
    expect = case.test.expect
    for name, count in (expect.document.violations or {}).items():
        actual = observed.violations.get(data_test_name(name, case.model.name), 0)
        if count != actual:
            yield ValueDifference(f"violations of {name}", str(count), str(actual), expect.locations["violations"])


def _row_differences(
    case: Case, observed: Observed, expected: ExpectedResult, comparison: RowComparison
) -> Iterator[RowDifference]:
    names = tuple(name for name, _ in observed.columns)
    stated = case.test.expect
    if expected.final is not None and stated.rows is not None:
        rows = comparison.compare(expected.final, observed.final)
        if any(row.kind is not RowKind.SAME for row in rows):
            yield RowDifference(None, names, rows, stated.rows.location, comparison.types)
    if expected.table is not None and stated.table is not None:
        rows = replace(comparison, ordered=False).compare(expected.table, observed.table or ())
        if any(row.kind is not RowKind.SAME for row in rows):
            yield RowDifference(None, names, rows, stated.table.location, comparison.types, of_table=True)
    if expected.batches is None or stated.batches is None:
        return
    for number, (wanted, actual) in enumerate(zip(expected.batches, observed.batches, strict=True)):
        rows = comparison.compare(wanted, actual)
        if any(row.kind is not RowKind.SAME for row in rows):
            yield RowDifference(number + 1, names, rows, stated.batches[number].location, comparison.types)


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
