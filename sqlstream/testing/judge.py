"""What a case observed beside what it expects: passed or failed, and every difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.state.results.unit_tests import (
    CaseResult,
    Observed,
    Outcome,
    Row,
    RowDifference,
    RowKind,
    ValueDifference,
)
from sqlstream.testing.cases import Case
from sqlstream.testing.compare import RowComparison, types_of

NO_ERROR = "no error"

_MAKES = {
    "late rows dropped": r"\bwatermark\b",
    "watermark": r"\bwatermark\b",
    "state rows": r"\bgroup\s+by\b",
}
"""What in a model makes a figure, as a pattern."""


@dataclass(frozen=True)
class ExpectedResult:
    """What a case expects, in the types of what it observed: `final` or `batches`, and the watermark in ms since 1970;
    None for what it does not state. `shown_watermark` is the observed one as text in the session's zone.
    """

    final: tuple[Row, ...] | None
    batches: tuple[tuple[Row, ...], ...] | None
    watermark: int | None
    shown_watermark: str = ""


def result_of(case: Case, outcome: Outcome, findings: Sequence[Finding] = ()) -> CaseResult:
    """Returns the result of a case that has no differences to show."""
    test = case.test
    place = case.model.file.location
    return CaseResult(test.name, test.model, test.location, outcome, findings=tuple(findings), model_place=place)


def judge_refusal(case: Case, findings: Sequence[Finding], conditions: Sequence[str] = ()) -> CaseResult:
    """Returns the result of a case whose model is refused before it runs, with `findings`."""
    expected = case.test.expect.document.error
    said = [*(finding.code for finding in findings), *conditions]
    if expected is None:
        return result_of(case, Outcome.BROKEN, findings)
    if any(_is_error(expected, code) for code in said):
        return result_of(case, Outcome.PASSED)
    difference = ValueDifference("error", expected, ", ".join(dict.fromkeys(said)), case.test.expect.places["error"])
    return replace(result_of(case, Outcome.FAILED, findings), differences=(difference,))


def judge(case: Case, observed: Observed, expected: ExpectedResult) -> CaseResult:
    """Returns the result of a case that has been run."""
    if observed.error is not None:
        return _judge_error(case, observed, observed.error)
    differences = tuple(_differences(case, observed, expected))
    result = result_of(case, Outcome.FAILED if differences else Outcome.PASSED)
    place = _model_place(case, differences)
    return replace(result, differences=differences, notes=_notes(observed), model_place=place)


def _model_place(case: Case, differences: Sequence[RowDifference | ValueDifference]) -> Location:
    """The model's line that names the first column whose values differ, or makes a figure that does, else its first."""
    for pattern in (pattern for each in differences for pattern in _patterns(each)):
        found = re.search(pattern, case.model.sql, re.IGNORECASE)
        if found and not case.model.file.is_python:
            return case.compiled.locate(case.model.unique_id, found.start()).location
    return case.model.file.location


def _patterns(difference: RowDifference | ValueDifference) -> Iterator[str]:
    if isinstance(difference, ValueDifference):
        yield from filter(None, [_MAKES.get(difference.what)])
        return
    changed = next((row.changed for row in difference.rows if row.changed), ())
    yield from (rf"\b{re.escape(difference.columns[column])}\b" for column in sorted(changed))


def _judge_error(case: Case, observed: Observed, error: Finding) -> CaseResult:
    expected = case.test.expect.document.error
    if expected is not None and any(_is_error(expected, said) for said in (error.code, *observed.conditions)):
        return result_of(case, Outcome.PASSED)
    result = result_of(case, Outcome.FAILED, (error,))
    if expected is None:
        return result
    actual = ", ".join(observed.conditions) or error.code
    return replace(result, differences=(ValueDifference("error", expected, actual, case.test.expect.places["error"]),))


def _is_error(expected: str, said: str) -> bool:
    """Whether `said` is the expected code or condition, or a condition below it (`A.B` of `A`)."""
    return said == expected or said.startswith(f"{expected}.")


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
            yield RowDifference(None, names, rows, stated.rows.location)
    if expected.batches is None or stated.batches is None:
        return
    for number, (wanted, actual) in enumerate(zip(expected.batches, observed.batches, strict=True)):
        rows = comparison.compare(wanted, actual)
        if any(row.kind is not RowKind.SAME for row in rows):
            yield RowDifference(number + 1, names, rows, stated.batches[number].location)


def _notes(observed: Observed) -> dict[str, str]:
    late = sum(observed.late)
    return {"late rows dropped": str(late)} if late else {}
