"""Unit tests that the program writes or repeats: `--update`, `--record` and `--watch`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.coverage import find_coverage
from sqlstream.app.test.record_case import record_case
from sqlstream.app.test.unit_tests import open_tests, ordered_tests, run_tests
from sqlstream.app.test.update import update_expectations
from sqlstream.app.test.watch import is_affected
from sqlstream.errors import Severity
from sqlstream.state.runs.case_outcomes import Outcome

PROJECT = Path(__file__).parent / "fixtures" / "tested"

CASES = """version: 2
unit_tests:
  - name: rows_in_lines
    model: counts
    given: &given
      - input: source('s', 'signals')
        rows:
          - {at: 2024-01-01 12:00, device: "01234"}
          - {at: 2024-01-01 12:40, device: b} # closes the window
    expect:
      rows:
        # what comes out
        - {since: 2024-01-01 12:00, device: a, signals: 1}
        - {since: 2024-01-01 12:00, device: x, signals: 1}
      watermark: 2024-01-01 12:00 # ten minutes before
  - name: rows_in_brackets
    model: counts
    given: *given
    expect: {rows: [], state_rows: 7}
"""

UPDATED = """version: 2
unit_tests:
  - name: rows_in_lines
    model: counts
    given: &given
      - input: source('s', 'signals')
        rows:
          - {at: 2024-01-01 12:00, device: "01234"}
          - {at: 2024-01-01 12:40, device: b} # closes the window
    expect:
      rows:
        # what comes out
        - {since: 2024-01-01 12:00, device: '01234', signals: 1}
      watermark: 2024-01-01 12:30:00 # ten minutes before
  - name: rows_in_brackets
    model: counts
    given: *given
    expect: {rows: [{since: '2024-01-01 12:00:00', device: '01234', signals: 1}], state_rows: 1}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of the fixtures, with two cases whose expectations are wrong."""
    folder = tmp_path / "tested"
    shutil.copytree(PROJECT, folder)
    shutil.rmtree(folder / "tests/models")
    (folder / "tests/models").mkdir()
    (folder / "tests/models/counts.yml").write_text(CASES)
    return folder


def run(folder: Path) -> list[Outcome]:
    """Returns the status of each case of the project."""
    outcome = run_tests(UnitTestRequest(ProjectRequest(folder)), lambda _result, _total: None)
    return [result.outcome for result in outcome.results]


@pytest.mark.slow
def test_update_changes_only_expected_rows(project: Path) -> None:
    """`--update` keeps comments, other rows and formatting, and the cases pass afterwards."""
    outcome = run_tests(UnitTestRequest(ProjectRequest(project)), lambda _result, _total: None)

    lines = list(update_expectations(project, outcome.results))

    assert lines == ["updated tests/models/counts.yml"]
    assert (project / "tests/models/counts.yml").read_text() == UPDATED
    assert run(project) == [Outcome.PASSED, Outcome.PASSED]


def test_update_keeps_expected_errors(project: Path) -> None:
    """`--update` does not change an expected error."""
    path = project / "tests/models/counts.yml"
    path.write_text(CASES.replace("{rows: [], state_rows: 7}", "{error: DIVIDE_BY_ZERO}"))
    chosen = Selection(("unit_test:rows_in_brackets",))
    outcome = run_tests(UnitTestRequest(ProjectRequest(project), chosen), lambda _result, _total: None)

    (line,) = update_expectations(project, outcome.results)

    assert "counts.rows_in_brackets is not updated" in line
    assert "DIVIDE_BY_ZERO" in path.read_text()


@pytest.mark.slow
def test_a_case_is_recorded_from_real_rows(project: Path) -> None:
    """A recorded case passes as written; masked columns get other values, and equal values stay equal."""
    data = project / "data"
    data.mkdir()
    rows = [("12:00", "ada"), ("12:01", "ada"), ("12:40", "bob"), ("12:41", "eve")]
    (data / "1.json").write_text("\n".join(f'{{"at":"2024-01-01 {at}:00","device":"{name}"}}' for at, name in rows))
    sources = project / "sources.yml"
    sources.write_text(sources.read_text().replace("path: data\n", "path: data\n        mask: [device]\n", 1))
    printed: list[str] = []

    outcome = record_case(UnitTestRequest(ProjectRequest(project)), "counts", 3, printed.append)

    text = (project / "tests/models/counts_recorded.yml").read_text()
    assert ([result.outcome for result in outcome.results], outcome.findings) == ([Outcome.PASSED], ())
    assert "ada" not in text
    assert "eve" not in text
    assert text.count("masked-1") == 3
    assert "- {since: '2024-01-01 12:00:00', device: masked-1, signals: 2}" in text
    assert "Wrote tests/models/counts_recorded.yml: counts.recorded" in printed
    assert "updated" not in "".join(printed)


def test_an_empty_recorded_case_gives_a_reason(project: Path) -> None:
    """An empty recorded case explains how to get rows: record more, or add one that closes the first window."""
    (project / "data").mkdir()
    (project / "data/1.json").write_text(
        "".join(f'{{"at":"2024-01-01 12:0{at}:00","device":"a"}}\n' for at in range(5))
    )

    outcome = record_case(UnitTestRequest(ProjectRequest(project)), "counts", 3, lambda _line: None)

    (finding,) = outcome.findings
    assert (finding.code, finding.severity, outcome.succeeded) == ("unit-test-empty", Severity.WARNING, True)
    assert "an event with the time 2024-01-01 12:20 or later" in finding.why
    assert finding.fix.startswith("delete it and record more rows with --limit 30, or add rows")


def test_recording_keeps_other_files(project: Path) -> None:
    """A file with another layout, or a broken one, stays unchanged: the recorded case goes into a new file."""
    (project / "data").mkdir()
    (project / "data/1.json").write_text('{"at":"2024-01-01 12:00:00","device":"a"}\n')
    recorded = project / "tests/models/totals_recorded.yml"
    recorded.write_text(text := "unit_tests:\n- name: recorded\n  model: totals\n  given: []\n  expect: {rows: []}\n")
    (project / "tests/models/torn.yml").write_text("unit_tests: [")

    outcome = record_case(UnitTestRequest(ProjectRequest(project)), "totals", 3, lambda _line: None)

    assert recorded.read_text() == text
    assert [result.location.path for result in outcome.results] == ["tests/models/totals_recorded_2.yml"]
    assert [result.full_name for result in outcome.results] == ["totals.recorded_2"]


def test_update_keeps_rows_in_csv(project: Path) -> None:
    """`--update` does not touch rows in CSV, because a YAML list in their place would break the file."""
    path = project / "tests/models/counts.yml"
    rows = "format: csv\n      rows: |\n        since,device,signals\n        2024-01-01 12:00,a,1\n"
    path.write_text(text := CASES.split("      rows:\n        #")[0] + f"      {rows}")
    outcome = run_tests(UnitTestRequest(ProjectRequest(project)), lambda _result, _total: None)

    (line,) = update_expectations(project, outcome.results)

    assert "counts.rows_in_lines is not updated: only numbers and rows written as YAML can be updated" in line
    assert path.read_text() == text


def test_a_failing_case_explains_missing_rows(project: Path) -> None:
    """A case that expects rows and gets none explains what the model waits for."""
    path = project / "tests/models/counts.yml"
    path.write_text(CASES.replace("2024-01-01 12:40, device: b", "2024-01-01 12:05, device: b"))
    chosen = Selection(("unit_test:rows_in_lines",))

    (result,) = run_tests(UnitTestRequest(ProjectRequest(project), chosen), lambda _result, _total: None).results

    assert "the first window ends at 2024-01-01 12:10" in result.notes["the model emitted no rows"]


def test_coverage_lists_untested_columns(project: Path) -> None:
    """A partial case covers only the columns that it compares."""
    path = project / "tests/models/counts.yml"
    path.write_text(
        CASES.replace("      watermark", "      partial: true\n      watermark").split("  - name: rows_in_br")[0]
    )
    path.write_text(path.read_text().replace(", signals: 1}", "}"))

    coverage = find_coverage(UnitTestRequest(ProjectRequest(project), Selection(("counts", "totals"))))

    assert [(model.model, model.tests, model.left) for model in coverage.models] == [
        ("counts", 1, ("signals",)),
        ("totals", 0, ("device", "total")),
    ]
    assert round(coverage.percent) == 40


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("models/counts.sql", True),
        ("models/totals.sql", False),
        ("tests/models/counts.yml", True),
        ("tests/models/other.yml", False),
        ("sources.yml", True),
        ("macros/city_of.sql", True),
        ("tests/fixtures/signals.csv", True),
    ],
)
def test_affected_cases_run_again(project: Path, changed: str, again: bool) -> None:
    """A change to a file that is neither a model nor a test affects every case."""
    tests = open_tests(ProjectRequest(project))

    assert [is_affected(tests, test, [changed]) for test in ordered_tests(tests)] == [again, again]
