"""docs/state.md has the change matrix that the tests prove."""

from __future__ import annotations

from tests.tools.make_changes import EDITS, PAGE, fill


def test_the_matrix_is_up_to_date() -> None:
    """The page has a row for each edit; otherwise run `python -m tests.tools.make_changes`."""
    page = PAGE.read_text(encoding="utf-8")

    assert page == fill(page)
    assert sum(page.count(f"| {verdict} |") for verdict in ("resume", "refuse", "ask")) == len(EDITS) >= 60
