"""Unit tests that give messages to Kafka sources: the same parser as in a run reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.unit_tests import run_tests
from sqlstream.report.unit_tests_text import failure_text
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.testing import prepared

PROJECT = Path(__file__).parent / "fixtures" / "tested_messages"
WANTED = {"fails": Outcome.FAILED, "broken": Outcome.BROKEN}


def run(selection: Selection, *, equivalence: bool = False) -> dict[str, CaseResult]:
    """Returns the results of the selected cases by name."""
    request = UnitTestRequest(ProjectRequest(PROJECT), selection, equivalence=equivalence)
    return {result.name: result for result in run_tests(request, lambda _result, _total: None).results}


@pytest.mark.slow
def test_messages_in_other_batches_give_the_same_rows() -> None:
    """The equivalence check parses the same messages again: in one batch, in other batches, and as a static table."""
    results = run(Selection(("unit_test:messages_are_parsed",)), equivalence=True)

    assert [result.outcome for result in results.values()] == [Outcome.PASSED]


@pytest.mark.slow
def test_cases_end_as_their_names_say() -> None:
    """Cases named `fails_` or `broken_` end that way, and all others pass."""
    results = run(Selection())

    wrong = [
        name for name, found in results.items() if found.outcome is not WANTED.get(name.split("_")[0], Outcome.PASSED)
    ]
    assert wrong == [], "\n".join(failure_text(results[name], None) or str(results[name]) for name in wrong)
    codes = {name: [finding.code for finding in found.findings] for name, found in results.items() if found.findings}
    assert codes == {
        "fails_without_an_expected_error": ["corrupt-record"],
        "broken_by_an_unknown_part": ["unit-test-column"],
        "broken_by_two_kinds": ["unit-test-batches"],
    }


def test_a_bug_ends_only_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of sqlstream in the handling of one case ends that case with its own text, and no other one."""

    def plant(_error: BaseException) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(prepared, "read_corrupt_record", plant)

    results = run(Selection(("unit_test:fails_without_an_expected_error", "unit_test:messages_are_parsed")))

    assert results["messages_are_parsed"].outcome is Outcome.PASSED
    broken = results["fails_without_an_expected_error"]
    assert (broken.outcome, [finding.code for finding in broken.findings]) == (Outcome.BROKEN, ["internal-error"])
    assert "KeyError: 'planted'" in broken.findings[0].why
