"""Real Spark judges each edit of what a query reads: no row may be missing in the output, or be there too often."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.changes.outcomes import described
from tests.spark.changes.read_edits import READ_EDITS, ReadEdit
from tests.spark.changes.read_worlds import judge_reads

SHORT = frozenset(
    {"renamed", "renamed_told", "moved_pattern", "restored", "absolute", "into_subfolder", "counted_moved"}
)
"""The edits of `make spark`."""


@pytest.mark.parametrize(
    ("edits", "root"),
    [
        pytest.param([edit for edit in READ_EDITS if edit.name in SHORT], "shop", id="short"),
        pytest.param(READ_EDITS, "shop", id="all", marks=pytest.mark.slow),
        pytest.param(
            [edit for edit in READ_EDITS if edit.name != "uri"],
            "depot [v2] a{b,c}",
            id="special",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_rows_are_read_once_or_the_edit_is_refused(edits: list[ReadEdit], root: str, tmp_path: Path) -> None:
    """`run` resumes exactly where each row is in the output as often as if the changed query had read all files. The
    folder of the project is no pattern.
    """
    found = judge_reads(edits, tmp_path / root)

    assert [described(each) for each in found if not each.is_expected] == []
