"""Real Spark judges each edit: the changed query on the old checkpoint must write what it would write from the start.

SQLSTREAM_CHANGES=all makes all edits of the matrix and 300 random ones (`make changes`); otherwise some of the matrix.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from _pytest.mark import ParameterSet
from edits import EDITS, Edit
from generator import random_edit
from worlds import Judged, judge

ALL = os.environ.get("SQLSTREAM_CHANGES") == "all"

SHORT = frozenset(
    {
        *(
            "sum_times",
            "upper_lower",
            "key_order",
            "aggregate_removed",
            "where_added",
            "where_key",
            "expression_below",
            "union_dropped",
        ),
        *("having_changed", "having_key", "result_projection", "cte_name", "conjuncts", "count_one", "split"),
        *(
            "window_size",
            "delay_longer",
            "chain_between",
            "chain_outer",
            "join_projection",
            "join_computed",
            "join_bound",
            "join_filter_both",
            "free_filter_key",
        ),
        *(
            "join_swap",
            "dedup_key",
            "dedup_columns",
            "append_update",
            "stateless_filter",
            "seed_changed",
            "option_rate",
        ),
        *("zone_date", "zone_window"),
    }
)
"""The edits of `make check`, some of each kind."""

SETTINGS = {
    "queries": ("", ""),
    "zone": ("spark.sql.session.timeZone: UTC", "spark.sql.session.timeZone: America/New_York"),
    "ansi": ("spark.sql.ansi.enabled: 'false'", "spark.sql.ansi.enabled: 'true'"),
}
"""Spark's settings before and after the edits of a group."""

RANDOM_EDITS, AT_ONCE, SEED = 300, 50, 2024
IN_VAIN = 0.05
"""The greatest share of random edits that `run` may refuse although the results agree."""


def groups() -> list[ParameterSet]:
    """Returns the edits to make, by their settings."""
    chosen = [edit for edit in EDITS if ALL or edit.name in SHORT]
    found = ((name, [edit for edit in chosen if edit.group == name]) for name in SETTINGS)
    return [
        pytest.param(name, edits, marks=[pytest.mark.smoke] if name == "queries" else [])
        for name, edits in found
        if edits
    ]


@pytest.mark.parametrize(("group", "edits"), groups())
def test_an_edit_resumes_exactly_where_its_results_are_right(group: str, edits: list[Edit], tmp_path: Path) -> None:
    """`run` resumes where the results agree, and refuses where they differ or Spark fails, as the matrix says."""
    before, after = SETTINGS[group]

    found = judge(edits, {False: before, True: after}, tmp_path)

    assert [described(each) for each in found if not each.verdict == each.right == each.edit.expected] == []


@pytest.mark.skipif(not ALL, reason="judging 300 random edits takes half an hour: `make changes`")
def test_no_random_edit_corrupts_state_in_silence(tmp_path: Path) -> None:
    """Of 300 random edits none resumes with wrong results, and few are refused in vain."""
    random = Random(SEED)
    edits = [random_edit(random, number) for number in range(RANDOM_EDITS)]
    parts = [edits[start : start + AT_ONCE] for start in range(0, RANDOM_EDITS, AT_ONCE)]

    found = [each for number, part in enumerate(parts) for each in judge(part, {}, tmp_path / str(number))]

    silent = [each for each in found if each.verdict == "resume" and each.right == "refuse"]
    in_vain = [each for each in found if each.verdict == "refuse" and each.right == "resume"]
    print(f"{len(found)} edits, {len(silent)} corrupted in silence, {len(in_vain)} refused in vain")
    print("\n\n".join(texts(in_vain)))
    assert texts(silent) == []
    assert len(in_vain) <= IN_VAIN * len(found)


def texts(found: Sequence[Judged]) -> list[str]:
    """Returns descriptions of judged edits."""
    return list(map(described, found))


def described(found: Judged) -> str:
    """Returns what happened to an edit."""
    edit = found.edit
    lines = (
        f"{edit.name} ({edit.text}): run does {found.verdict}, right is {found.right}, the matrix says {edit.expected}",
        edit.sql(changed=False),
        edit.sql(changed=True),
        found.refusal or "",
        found.error or "",
    )
    return "\n".join(lines)
