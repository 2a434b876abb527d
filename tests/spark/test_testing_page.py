"""The blocks of docs/testing.md make one project; all of its unit tests pass, also as batches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.unit_tests import run_tests
from sqlstream.report.unit_tests_text import failure_text

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
NAMED = re.compile(r"(?ms)^```(?:yaml|sql)\n((?:#|--) (\S+)\n.*?)^```$")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page's blocks; the first line of each block names its file."""
    for text, name in NAMED.findall(PAGE.read_text(encoding="utf-8")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_tests_of_the_page_pass(project: Path) -> None:
    """The page's tests pass in batches, and with all rows at once."""
    outcome = run_tests(UnitTestRequest(ProjectRequest(project), equivalence=True), lambda _result, _total: None)

    assert len(outcome.results) == 7
    assert outcome.succeeded, "\n".join(failure_text(result, None) for result in outcome.results)


def test_the_page_shows_the_printed_failure(project: Path) -> None:
    """The page shows the failure that a model that counts one too many prints."""
    model = project / "models" / "clicks_per_page.sql"
    model.write_text(model.read_text().replace("count(*)", "count(*) + 1"))
    chosen = Selection(("unit_test:a_late_click_counts_and_a_too_late_one_does_not",))

    (result,) = run_tests(UnitTestRequest(ProjectRequest(project), chosen), lambda _result, _total: None).results

    assert f"{failure_text(result, None)}\n```" in PAGE.read_text(encoding="utf-8")
