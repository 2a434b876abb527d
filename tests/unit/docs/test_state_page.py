"""docs/state.md has the change matrix that the tests prove."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_changes.py"))


def test_the_matrix_is_up_to_date() -> None:
    """The page has a row for each edit; otherwise run tests/tools/make_changes.py."""
    page = TOOL["PAGE"].read_text(encoding="utf-8")

    assert page == TOOL["fill"](page)
    assert sum(page.count(f"| {verdict} |") for verdict in ("resume", "refuse", "ask")) == len(TOOL["EDITS"]) >= 60
