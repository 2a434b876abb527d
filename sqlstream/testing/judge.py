"""Compares the observed result of a case with the expected one: passed or failed, with all differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.state.runs.unit_tests import CaseResult, Observed, Outcome, Row, RowDifference, RowKind, ValueDifference
from sqlstream.testing.cases import Case
from sqlstream.testing.compare import RowComparison, types_of

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
    return CaseResult(test.name, test.model, test.location, outcome, findings=tuple(findings), model_place=place)


def judge_refusal(case: Case, findings: Sequence[Finding], conditions: Sequence[str] = ()) -> CaseResult:
    """Returns the result of a case whose model is refused before it runs, with `findings`."""
    expected = case.test.expect.document.error
    codes = [*(finding.code for finding in findings), *conditions]
    if expected is None:
        return result_of(case, Outcome.BROKEN, findings)
    if any(_is_error(expected, code) for code in codes):
        return result_of(case, Outcome.PASSED)
    difference = ValueDifference("error", expected, ", ".join(dict.fromkeys(codes)), case.test.expect.places["error"])
    return replace(result_of(case, Outcome.FAILED, findings), differences=(difference,))


def judge(case: Case, observed: Observed, expected: ExpectedResult) -> CaseResult:
    """Returns the result of a case after its run."""
    if observed.error is not None:
        return _judge_error(case, observed, observed.error)
    differences = tuple(_differences(case, observed, expected))
    result = result_of(case, Outcome.FAILED if differences else Outcome.PASSED)
    place = _model_place(case, differences)
    return replace(result, differences=differences, notes=_notes(observed), model_place=place)


def _model_place(case: Case, differences: Sequence[RowDifference | ValueDifference]) -> Location:
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
    return replace(result, differences=(ValueDifference("error", expected, actual, case.test.expect.places["error"]),))


def _is_error(expected: str, code: str) -> bool:
    """Whether `code` is the expected code or condition, or one of its subconditions (`A.B` of `A`)."""
    return code == expected or code.startswith(f"{expected}.")


def _differences(case: Case, observed: Observed, expected: ExpectedResult) -> Iterator[RowDifference | ValueDifference]:
    document, places = case.test.expect.document, case.test.expect.places
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
    if document.state_rows not in (None, observed.state_rows):
        yield ValueDifference("state rows", str(document.state_rows), str(observed.state_rows), places["state_rows"])


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


def _notes(observed: Observed) -> dict[str, str]:
    late = sum(observed.late)
    return {"late rows dropped": str(late)} if late else {}
