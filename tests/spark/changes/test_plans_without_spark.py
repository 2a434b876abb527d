"""The verdicts of `plan` without Spark never contradict those from Spark's optimized plans.

Spark only analyzes the queries. `make changes` compares 300 random edits, `make test-all` 30.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyspark
import pytest

from sqlstream.compiler.spark_versions import minor_version
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.spark.changes.closed_edits import CLOSED_EDITS
from tests.spark.changes.compared_plans import UNCHANGED, contradictions, planned_twice
from tests.spark.changes.edits import ASK, REFUSE, RESUME, Edit, aggregation
from tests.spark.changes.filters import random_filters
from tests.spark.changes.generator import random_edit
from tests.spark.changes.matrix import MATRIX, SETTINGS

RANDOM_EDITS, SEED = 30, 4096
NEEDS_NAMES = () if minor_version(pyspark.__version__) >= (4, 3) else ("union_swapped", "csv_order", "csv_name")
"""Edits that a checkpoint allows only if it knows sources by their names, since Spark 4.3."""

GROUPS = [
    # the group `queries` alone takes longer than all others
    pytest.param(name, marks=[] if name == "queries" else [pytest.mark.smoke])
    for name in SETTINGS
    if any(edit.group == name for edit in CLOSED_EDITS)
]

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

    decided = [both for both in verdicts.values() if both[1].verdict is not Verdict.UNDECIDED]
    assert contradictions(edits, verdicts) == []
    assert len(decided) >= MOST_DECIDED * len(verdicts)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_what_a_signature_can_miss(group: str, tmp_path: Path) -> None:
    """Literals, names in types, subqueries, hints and settings: each edit has the verdict of the change matrix, which
    Spark confirms, and without Spark the same or none.
    """
    edits = [edit for edit in CLOSED_EDITS if edit.group == group and edit.name not in NEEDS_NAMES]

    verdicts = planned_twice(edits, tmp_path, group)

    found = {name: _expected(with_spark) for name, (with_spark, _) in verdicts.items()}
    assert found == {edit.name: edit.expected for edit in edits}
    assert contradictions(edits, verdicts) == []


@pytest.mark.slow
def test_an_early_signature_is_compared_as_it_was(tmp_path: Path) -> None:
    """A ledger whose signature has an earlier format is neither refused for that nor taken for the same."""
    names = (
        "sum_times",
        "result_projection",
        "where_added",
        "window_size",
        "where_key",
        "cte_name",
        "repartition_added",
    )
    edits = [edit for edit in MATRIX if edit.name in names]

    verdicts = planned_twice(edits, tmp_path, form=1)

    found = {name: _expected(with_spark) for name, (with_spark, _) in verdicts.items()}
    assert len(found) == len(names)
    assert found == {edit.name: edit.expected for edit in edits}


def _expected(verdict: QueryVerdict) -> str:
    """Returns a verdict in the words of the matrix."""
    return RESUME if verdict.verdict in UNCHANGED else ASK if verdict.verdict is Verdict.UNKNOWN else REFUSE


@pytest.mark.smoke
def test_a_query_with_the_current_time_resumes_by_its_sql(tmp_path: Path) -> None:
    """Spark does not show the plan of such a query, so its SQL decides, also with Spark."""
    before = aggregation("k, count(*) as n, now() as at")
    edits = [
        Edit("renamed", "", "", before, before.replace(" as n", " as number"), ""),
        Edit("changed", "", "", before, before.replace("count(*)", "count(v)"), ""),
    ]

    (renamed, _), (changed, _) = planned_twice(edits, tmp_path).values()

    assert (renamed.verdict, changed.verdict) == (Verdict.RESUME, Verdict.UNKNOWN)
