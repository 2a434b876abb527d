"""`sqlstream test` on Spark: every feature of a case once, in one project and one session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.unit_tests import UnitTestOutcome, run_tests
from sqlstream.cli.main import main
from sqlstream.report.unit_tests_text import failure_text
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome

PROJECT = Path(__file__).parent / "fixtures" / "tested"
ROOT = Path(__file__).parents[2]

PASSED, FAILED, BROKEN, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.BROKEN, Outcome.SKIPPED


def run(selection: Selection, *, target: str | None = None, equivalence: bool = False) -> UnitTestOutcome:
    """Runs the selected cases."""
    request = UnitTestRequest(ProjectRequest(PROJECT, target=target), selection, equivalence=equivalence)
    return run_tests(request, lambda _result, _total: None)


@pytest.fixture(scope="module")
def outcome() -> UnitTestOutcome:
    """All cases of the project, except for the one that only the equivalence check fails."""
    return run(Selection(exclude=("rare",)))


@pytest.fixture(scope="module")
def results(outcome: UnitTestOutcome) -> dict[str, CaseResult]:
    """The results by case name."""
    return {result.name: result for result in outcome.results}


@pytest.mark.smoke
def test_cases_run_on_every_spark() -> None:
    """Late rows, restarts and equivalence work on every Spark, although its test internals differ by version."""
    outcome = run(
        Selection(("unit_test:a_watermark_*", "unit_test:ten_late_*", "unit_test:every_type_*")), equivalence=True
    )

    assert [result.outcome for result in outcome.results] == [PASSED, PASSED, PASSED]


@pytest.mark.slow
def test_cases_end_as_their_names_say(outcome: UnitTestOutcome) -> None:
    """Cases named `fails_`, `broken_` or `skipped_` end that way, and all others pass."""
    wanted = {"fails": FAILED, "broken": BROKEN, "skipped": SKIPPED}

    ended = {result.name: result for result in outcome.results}

    assert len(ended) == len(outcome.results) > 25
    wrong = [name for name, result in ended.items() if result.outcome is not wanted.get(name.split("_")[0], PASSED)]
    assert wrong == [], "\n".join(failure_text(ended[name], None) or str(ended[name]) for name in wrong)
    assert not outcome.succeeded


def heads(result: CaseResult) -> list[str]:
    """Returns the location and code of each finding of a case."""
    return [f"{finding.location}: {finding.code}" for finding in result.findings]


@pytest.mark.slow
def test_a_missing_input_column_is_named(results: dict[str, CaseResult]) -> None:
    """A missing input column that the model reads is named; columns that it does not read may be left out."""
    (finding,) = results["broken_because_a_column_is_left_out"].findings

    assert finding.code == "unit-test-column"
    assert finding.message.endswith("lack `device`")


def test_a_row_without_a_column_is_located(results: dict[str, CaseResult]) -> None:
    """Rows that leave out a column are counted and located at the first one, although other rows have the column."""
    (finding,) = results["broken_because_a_row_leaves_a_column_out"].findings

    assert (finding.code, str(finding.location)) == ("unit-test-column", "tests/models/counts.yml:63:55")
    assert finding.message == "2 of 3 rows of `source('s', 'signals')` lack `device`"
    assert finding.fix == "add it to every row; for no value, use `device: null`"


def test_a_failure_shows_the_rows_that_differ(results: dict[str, CaseResult]) -> None:
    """A failure shows the batch, the changed cells, the model's line, and the command to run only this case."""
    printed = failure_text(results["fails_in_its_second_batch"], None)

    assert "why: batch 2: 1 changed, 1 missing, 1 unexpected, 1 as expected" in printed
    assert "~   2024-01-01 12:00:00   a        1 → 2" in printed
    assert "-   2024-01-01 12:00:00   x        7" in printed
    assert "+   2024-01-01 12:00:00   b        1" in printed
    assert "fix: change models/counts.sql:2:" in printed
    assert printed.endswith("run only this test: sqlstream test --select unit_test:counts.fails_in_its_second_batch")


def test_a_failed_figure_shows_both_values(results: dict[str, CaseResult]) -> None:
    """A failed check of late rows, watermark or state shows the expected and the actual value."""
    (late, watermark, state) = results["fails_by_its_figures"].differences

    assert [late.expected, late.actual] == ["9", "0"]  # type: ignore[union-attr]
    assert [watermark.expected, watermark.actual] == ["2024-01-01", "2024-01-01 12:30:00"]  # type: ignore[union-attr]
    assert [state.expected, state.actual] == ["7", "1"]  # type: ignore[union-attr]


def test_a_failed_batch_has_its_cause(results: dict[str, CaseResult]) -> None:
    """A batch with an unexpected error reports it as a failed query does."""
    (finding,) = results["fails_with_an_error"].findings

    assert finding.code == "query-failed"
    assert "DIVIDE_BY_ZERO" in finding.why


@pytest.mark.slow
def test_a_stream_that_differs_from_its_batch_is_shrunk() -> None:
    """A stream that differs from its batch is shrunk to two rows in two batches; joins and totals do not differ."""
    chosen = Selection(("rare", "joined", "acked", "unit_test:only_what_changes_*", "unit_test:a_query_may_give_*"))
    results = {result.name: result for result in run(chosen, equivalence=True).results}

    result = results.pop("fails_because_the_stream_is_not_its_batch")
    assert [len(batch) for batch in result.split] == [1, 1]
    assert "sqlstream test --equivalence --select unit_test:rare." in failure_text(result, None)
    assert [result.outcome for result in results.values()] == [PASSED] * 5


def test_a_failed_split_is_reported() -> None:
    """If the row-by-row split fails although the given batches pass, the failure says so."""
    (result,) = run(Selection(("shares",)), equivalence=True).results

    printed = failure_text(result, None)
    assert result.outcome is FAILED
    assert "`shares` fails with its rows row by row" in printed
    assert printed.count("  batch ") == 2


@pytest.mark.slow
def test_equivalence_without_idle_batches_compares_closed_groups() -> None:
    """Without idle batches, equivalence compares only what later rows close; nothing follows the last batch."""
    chosen = Selection(("unit_test:a_window_that_is_closed*", "unit_test:a_watermark_of_the_source"))

    results = run(chosen, target="still", equivalence=True).results

    assert {result.name: result.outcome for result in results} == {
        "a_window_that_is_closed_without_an_idle_batch": PASSED,
        "a_watermark_of_the_source": FAILED,
    }


def test_a_refused_upgrade_is_reported(results: dict[str, CaseResult]) -> None:
    """An unexpected refusal of an upgrade is reported with the code that `run` uses."""
    assert heads(results["broken_because_an_upgrade_is_refused"]) == ["models/counts.sql:3:55: state-change"]


def test_cases_are_selected_by_name_and_model() -> None:
    """A selected model selects its cases; the selected case is disabled, so nothing runs."""
    chosen = Selection(("unit_test:skipped_*", "test_name:skipped_*"), ("unit_test:totals.*",))
    reported: list[CaseResult] = []

    outcome = run_tests(
        UnitTestRequest(ProjectRequest(PROJECT), chosen), lambda result, _total: reported.append(result)
    )

    assert [result.name for result in reported] == ["skipped_as_it_is_not_enabled"]
    assert outcome.succeeded


def run_cli(*arguments: str) -> int:
    """Returns the exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        main(["test", "--project-dir", str(PROJECT), *arguments])
    return int(str(ended.value.code))


def test_a_failure_exits_with_1_and_writes_json_and_xml(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A failing case exits with code 1 and writes one JSON object and a JUnit XML file."""
    report = tmp_path / "junit.xml"

    code = run_cli("-s", "unit_test:fails_in_its_second_batch", "--output", "json", "--junit-xml", str(report))

    report_json = json.loads(capsys.readouterr().out)
    (entry,) = report_json["results"]
    suite = ET.fromstring(report.read_text()).find("testsuite")
    assert code == 1
    assert (report_json["succeeded"], entry["status"], entry["differences"][0]["batch"]) == (False, "failed", 2)
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")


def test_a_selection_without_tests_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A selection without tests is an error, as in the other commands."""
    assert run_cli("-s", "unit_test:none") == 1
    assert "empty-selection" in capsys.readouterr().err


@pytest.mark.slow
def test_pytest_collects_the_same_cases(tmp_path: Path) -> None:
    """Pytest collects one item per case, supports -k, and shows the differing rows."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "fails_in_its_second or lateness"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    del tmp_path
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "~   2024-01-01 12:00:00   a        1 → 2" in done.stdout
    assert "FAILED tests/models/counts.yml::counts.fails_in_its_second_batch" in done.stdout
