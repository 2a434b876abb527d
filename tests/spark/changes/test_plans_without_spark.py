"""The verdicts of `plan` without Spark never contradict those from Spark's optimized plans.

Spark only analyzes the queries. `make changes` compares 300 random edits, `make test-all` 30.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from compared_plans import contradictions, planned_twice
from edits import Edit, aggregation
from filters import random_filters
from generator import random_edit

from sqlstream.state.verdicts import Verdict

RANDOM_EDITS, SEED = 30, 4096
MOST_DECIDED = 0.5
"""The least share of random filters with a verdict."""


@pytest.mark.slow
def test_no_random_edit_has_another_verdict_without_spark(tmp_path: Path) -> None:
    """What resumes without Spark resumes with it, and what is refused without Spark is refused with it."""
    random = Random(SEED)
    edits = [random_edit(random, number) for number in range(RANDOM_EDITS)]

    assert contradictions(edits, planned_twice(edits, tmp_path)) == []


@pytest.mark.slow
def test_no_random_filter_has_another_verdict_without_spark(tmp_path: Path) -> None:
    """Filters that imply one another, exclude each other, or that Spark rewrites to the same, never get another verdict
    without Spark. Most others are decided.
    """
    random = Random(SEED)
    edits = [random_filters(random, number) for number in range(RANDOM_EDITS)]

    verdicts = planned_twice(edits, tmp_path)

    decided = [both for both in verdicts if both[1].verdict is not Verdict.UNDECIDED]
    assert contradictions(edits, verdicts) == []
    assert len(decided) >= MOST_DECIDED * len(verdicts)


@pytest.mark.smoke
def test_a_query_with_the_current_time_resumes_by_its_sql(tmp_path: Path) -> None:
    """Spark does not show the plan of such a query, so its SQL decides, also with Spark."""
    before = aggregation("k, count(*) as n, now() as at")
    edits = [
        Edit("renamed", "", "", before, before.replace(" as n", " as number"), ""),
        Edit("changed", "", "", before, before.replace("count(*)", "count(v)"), ""),
    ]

    (renamed, _), (changed, _) = planned_twice(edits, tmp_path)

    assert (renamed.verdict, changed.verdict) == (Verdict.RESUME, Verdict.UNKNOWN)
