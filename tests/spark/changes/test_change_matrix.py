"""Real Spark judges each edit: the changed query on the old checkpoint must write what it would write from the start.

`make changes` makes all edits of the matrix and 300 random ones; these are some of the matrix.
"""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from _pytest.mark import ParameterSet

from sqlstream.compiler.spark_versions import minor_version
from tests.spark.changes.edits import Edit
from tests.spark.changes.matrix import MATRIX, SETTINGS, SHORT, SMOKE, settings_text
from tests.spark.changes.outcomes import described
from tests.spark.changes.worlds import judge

CHOSEN = SMOKE if minor_version(pyspark.__version__) == (4, 1) else SHORT


def groups() -> list[ParameterSet]:
    """Returns the edits to make, by their settings."""
    chosen = [edit for edit in MATRIX if edit.name in CHOSEN]
    found = ((name, [edit for edit in chosen if edit.group == name]) for name in SETTINGS)
    return [
        pytest.param(name, edits, marks=[pytest.mark.smoke] if name == "queries" else [])
        for name, edits in found
        if edits
    ]


@pytest.mark.parametrize(("group", "edits"), groups())
def test_an_edit_resumes_exactly_where_its_results_are_right(group: str, edits: list[Edit], tmp_path: Path) -> None:
    """`run` resumes where the results agree, and refuses where they differ or Spark fails, as the matrix says."""
    before, after = map(settings_text, SETTINGS[group])

    found = judge(edits, {False: before, True: after}, tmp_path)

    assert [described(each) for each in found if not each.is_expected] == []
