"""docs/testing.md: its blocks make one project, all of whose unit tests pass, also as batches."""

from __future__ import annotations

import re
from pathlib import Path

from sqlstream.app.request import ProjectRequest
from sqlstream.app.test import UnitTestRequest, run_tests
from sqlstream.report.test_text import failure_text

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
NAMED = re.compile(r"(?ms)^```(?:yaml|sql)\n(?:#|--) (\S+)\n(.*?)^```$")


def test_the_blocks_of_the_page_make_a_project_whose_tests_pass(tmp_path: Path) -> None:
    """Each block is the file that its first line names."""
    blocks = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    for name, text in blocks:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    outcome = run_tests(UnitTestRequest(ProjectRequest(tmp_path), equivalence=True), lambda _result, _total: None)

    assert len(outcome.results) == 6
    assert outcome.succeeded, "\n".join(failure_text(result, None) for result in outcome.results)
