"""The warning about queries whose tasks never end."""

from __future__ import annotations

import pytest

from sqlstream.spark.queries.occupied_cores import warning_text


@pytest.mark.parametrize(
    ("keepers", "others", "cores"),
    [({"a": 1}, ["b"], 2), ({"a": 2}, [], 2), ({}, ["b"], 2)],
    ids=["a core is left", "no other query", "no such query"],
)
def test_enough_cores_need_no_warning(keepers: dict[str, int], others: list[str], cores: int) -> None:
    """A query that runs alone can use all cores."""
    assert warning_text(keepers, others, cores) is None


def test_tasks_that_cannot_start_are_reported() -> None:
    """The warning says how many tasks cannot start, because their partitions are never read."""
    assert warning_text({"a": 3}, [], 2) == (
        "a keeps 3 tasks running until the end, and Spark has 2 cores: 1 of the tasks cannot start, so "
        "their partitions are not read; give the target more cores, or read fewer partitions"
    )


def test_the_tasks_of_several_queries_are_added() -> None:
    """The warning adds the tasks of several queries, each of which alone would leave a core."""
    assert warning_text({"a": 1, "b": 1}, ["c", "d"], 2) == (
        "a, b keep 2 tasks running until the end, and Spark has 2 cores: no core is left for c, d; run a, b "
        "separately, give the target more cores, or read fewer partitions"
    )
