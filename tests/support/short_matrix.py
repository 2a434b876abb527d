"""The short form of the change matrix, for storage that is not a folder of this machine."""

from __future__ import annotations

from pathlib import Path

from tests.spark.changes.matrix import MATRIX, SMOKE
from tests.spark.changes.outcomes import described
from tests.spark.changes.worlds import judge

EDITS = tuple(edit for edit in MATRIX if edit.name in SMOKE and edit.group == "queries")


def misjudged_edits(folder: Path, storage: str, settings: str = "") -> list[str]:
    """Returns descriptions of the edits whose query `run` resumes although its results then differ from a run from the
    start, or refuses without need. The checkpoints are in folders of `storage`. `settings` are those of Spark in YAML.
    """
    found = judge(EDITS, {False: settings, True: settings}, folder, storage=storage)
    assert found
    return [described(each) for each in found if not each.is_expected]
