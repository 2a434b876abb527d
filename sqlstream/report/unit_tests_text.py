"""Formats results of unit tests as lines of text, in dbt's style, with tables of the rows that differ and of the
coverage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from unicodedata import normalize

from sqlstream.errors import Finding
from sqlstream.numbers import plural, seconds_text
from sqlstream.report.findings import finding_text
from sqlstream.report.rows import json_text, shown_text
from sqlstream.report.table import LINE_WIDTH, fit_table
from sqlstream.state.runs.case_outcomes import (
    ANY,
    CaseResult,
    ComparedRow,
    Coverage,
    ModelCoverage,
    Outcome,
    RowDifference,
    RowKind,
    ValueDifference,
)

WORDS = {Outcome.PASSED: "PASS", Outcome.FAILED: "FAIL", Outcome.BROKEN: "ERROR", Outcome.SKIPPED: "SKIP"}

MARKS = {RowKind.SAME: "", RowKind.CHANGED: "~", RowKind.MISSING: "-", RowKind.EXTRA: "+"}

WORDS_OF_ROWS = {
    RowKind.CHANGED: "changed",
    RowKind.MISSING: "missing",
    RowKind.EXTRA: "unexpected",
    RowKind.SAME: "as expected",
}

LEGEND = {
    RowKind.CHANGED: "~ has different values: expected → actual",
    RowKind.MISSING: "- is expected but missing",
    RowKind.EXTRA: "+ is not expected",
}

MOST_NAMED = 6
"""The number of columns to name for each model."""


def result_line(result: CaseResult, index: int, total: int) -> str:
    """Returns the line of one test."""
    word = WORDS[result.outcome]
    start = f"{index} of {total} {word} unit test {result.full_name} "
    end = word if result.outcome is Outcome.SKIPPED else f"{word} in {seconds_text(result.seconds)}"
    return f"{start.ljust(LINE_WIDTH, '.')} [{end}]"


def failure_text(result: CaseResult, width: int | None) -> str:
    """Returns why a test did not pass, or empty text if it did. Tables are at most `width` characters wide."""
    if result.outcome not in (Outcome.FAILED, Outcome.BROKEN):
        return ""
    if result.outcome is Outcome.BROKEN:
        return "\n".join(map(finding_text, result.findings))
    if not result.differences:
        return "\n".join([*map(finding_text, result.findings), *_split_lines(result), _alone(result)])
    lines = [
        f"{result.location}: [unit-test-failed] `{result.model}` does not return what `{result.name}` expects",
        f"  why: {'; '.join(map(_summary, result.differences))}",
        f"  fix: change {result.model_location}, or {_other_fix(result)}",
    ]
    for difference in result.differences:
        lines += _table_lines(difference, width) if isinstance(difference, RowDifference) else ()
    lines += [finding_text(finding) for finding in result.findings]
    lines += _split_lines(result)
    lines += [f"  {what}: {value}" for what, value in result.notes.items()]
    return "\n".join([*lines, _alone(result)])


def _split_lines(result: CaseResult) -> list[str]:
    batches = enumerate(result.split, start=1)
    return [line for number, batch in batches for line in (f"  batch {number}:", *(f"    {row}" for row in batch))]


def _other_fix(result: CaseResult) -> str:
    if _is_split(result):
        return "set `equivalence: false`, with a `reason` why the results differ"
    return f"what the test expects at {result.differences[0].location}"


def _is_split(result: CaseResult) -> bool:
    """Whether the stream differs from the batch query, not from the expected rows."""
    return bool(result.split)


def _alone(result: CaseResult) -> str:
    flag = " --equivalence" if _is_split(result) else ""
    return f"  run only this test: sqlstream test{flag} --select {result.selector}"


def _summary(difference: RowDifference | ValueDifference) -> str:
    if isinstance(difference, ValueDifference):
        return f"{difference.what}: expected {difference.expected}, is {difference.actual}"
    counts = Counter(row.kind for row in difference.rows)
    kinds = ", ".join(f"{counts[kind]} {word}" for kind, word in WORDS_OF_ROWS.items() if counts[kind])
    return f"{_name(difference)}: {kinds}"


def _name(difference: RowDifference) -> str:
    if difference.way is not None:
        return f"{difference.way} returns other rows than one micro-batch"
    if difference.of_table:
        return "the table of the sink"
    return "the result" if difference.batch is None else f"batch {difference.batch}"


def _table_lines(difference: RowDifference, width: int | None) -> Iterator[str]:
    place = difference.location
    expected = f", expected at {place.path}:{place.line}" if difference.way is None else ""
    yield f"  {_name(difference)}{expected}:"
    header = ["", *difference.columns]
    cells = [[MARKS[row.kind], *_cells(row)] for row in difference.rows]
    table, hidden = fit_table(header, cells, [], None if width is None else width - 4)
    yield from (f"    {line}" for line in table.splitlines())
    if hidden:
        yield f"    {plural(len(hidden), 'more column')}: {', '.join(hidden)}"
    kinds = {row.kind for row in difference.rows}
    yield from (f"    {text}" for kind, text in LEGEND.items() if kind in kinds)


def _cells(row: ComparedRow) -> list[str]:
    if row.expected is None or row.actual is None:
        return [_cell(value) for value in row.expected or row.actual or ()]
    both = enumerate(zip(row.expected, row.actual, strict=True))
    return [_change(expected, actual) if at in row.changed else _cell(actual) for at, (expected, actual) in both]


def _cell(value: object) -> str:
    return repr(value) if value is ANY else shown_text(value)


def _change(expected: object, actual: object) -> str:
    """Returns both values of a column that differs, escaped if they look the same."""
    one, other = _cell(expected), _cell(actual)
    if normalize("NFKC", one) == normalize("NFKC", other):
        one, other = ascii(one), ascii(other)
    return f"{one} → {other}"


def done_line(results: Sequence[CaseResult], findings: Sequence[Finding] = ()) -> str:
    """Returns the last line, as in dbt. ERROR counts failed and broken tests, and the errors in `findings`."""
    counts = Counter(result.outcome for result in results)
    errors = sum(finding.is_error for finding in findings)
    bad = counts[Outcome.FAILED] + counts[Outcome.BROKEN] + errors
    passed, skipped = counts[Outcome.PASSED], counts[Outcome.SKIPPED]
    return f"Done. PASS={passed} WARN={len(findings) - errors} ERROR={bad} SKIP={skipped} TOTAL={len(results)}"


def coverage_text(coverage: Coverage, width: int | None) -> str:
    """Returns a table with a row for each model, and the total in percent."""
    header = ["model", "tests", "columns", "not covered"]
    cells = [[model.model, str(model.tests), _count(model), _left(model)] for model in coverage.models]
    table, _ = fit_table(header, cells, [1, 2], width)
    untested = [model for model in coverage.models if not model.tests]
    rest = f"; {len(untested)} of {len(coverage.models)} models have no test" if untested else ""
    return f"{table}\n\ntests cover {coverage.percent:.0f} % of the columns{rest}"


def _count(model: ModelCoverage) -> str:
    return f"{len(model.columns) - len(model.left)}/{len(model.columns)}" if model.columns else "?"


def _left(model: ModelCoverage) -> str:
    if not model.tests:
        return "no test"
    named = ", ".join(model.left[:MOST_NAMED])
    more = len(model.left) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def coverage_json(coverage: Coverage) -> str:
    """Returns the coverage as one JSON object."""
    models = [
        {"name": model.model, "tests": model.tests, "columns": list(model.columns), "not_stated": list(model.left)}
        for model in coverage.models
    ]
    return json_text({"percent": round(coverage.percent, 1), "models": models}, indent=2)
