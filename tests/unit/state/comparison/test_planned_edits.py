"""`plan` without Spark decides edits as real Spark does, or leaves them undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.spark.changes.edits import EDITS, REFUNDS, TWO_KEYS, Edit, aggregation
from tests.spark.changes.matrix import MATRIX, SETTINGS
from tests.spark.changes.planned_edits import planned

RESUMES = frozenset({Verdict.RESUME, Verdict.UNCHANGED})
COSMETIC = frozenset(edit.name for edit in MATRIX if edit.kind == "cosmetic")
MOST_UNDECIDED = 0.4
"""The greatest share of the ordinary edits of the change matrix that may need Spark."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, QueryVerdict]:
    """The verdict on each edit of the change matrix."""
    root = tmp_path_factory.mktemp("edits")
    groups = {group: [edit for edit in MATRIX if edit.group == group] for group in SETTINGS}
    found = {group: planned(edits, root / group, group=group) for group, edits in groups.items()}
    return {name: verdict for each in found.values() for name, verdict in each.items()}


def test_no_verdict_differs_from_that_of_spark(verdicts: dict[str, QueryVerdict]) -> None:
    """An edit resumes or is refused only if the change matrix, which real Spark confirms, says so."""
    decided = [(edit, verdicts[edit.name].verdict) for edit in MATRIX]
    wrong = {
        edit.name: (edit.expected, verdict)
        for edit, verdict in decided
        if verdict is not Verdict.UNDECIDED and (verdict in RESUMES) != (edit.expected == "resume")
    }

    assert wrong == {}


def test_few_edits_need_spark(verdicts: dict[str, QueryVerdict]) -> None:
    """Without Spark, most ordinary edits have a verdict."""
    counts = Counter(verdicts[edit.name].verdict for edit in EDITS)
    print(", ".join(f"{number} {verdict}" for verdict, number in counts.items()))

    assert counts[Verdict.UNDECIDED] <= MOST_UNDECIDED * len(EDITS)


def test_all_cosmetic_edits_resume(verdicts: dict[str, QueryVerdict]) -> None:
    """Formatting, names, the order of conditions, `count(1)`, and a split into models need no Spark."""
    assert {name for name in COSMETIC if verdicts[name].verdict not in RESUMES} == set()


def test_operands_decide_the_order_of_aggregates(pairs: dict[str, Verdict]) -> None:
    """Spark stores the results of aggregate functions in the order of the text, also where it has no other meaning."""
    assert pairs[OPERANDS] is Verdict.REFUSE


def test_a_refusal_says_what_spark_would_say(verdicts: dict[str, QueryVerdict]) -> None:
    """The reasons have the words of those from Spark's plan."""
    assert verdicts["sum_times"].reason == (
        "the aggregates of the aggregation changed from `sum(shop.orders.v)` to `sum(1000 * shop.orders.v)`"
    )
    assert verdicts["where_added"].reason == "the input of the aggregation now has `where shop.orders.v > 2`"


ORDERS = "{{ source('shop', 'orders') }}"
KEPT = aggregation("k, count(*) as n, max(v) as m")
INNER = f"with c as (select k, count(*) as n, sum(v) as s from {ORDERS} group by k) "

ONLY_SPARK_CAN_TELL = {
    "a coalesce that needs no second argument": (
        aggregation("k, coalesce(count(*), max(v)) as n"),
        aggregation("k, count(*) as n, max(v) as m"),
    ),
    "a HAVING that is never true": (KEPT, f"{KEPT} having count(*) is null"),
    "two HAVING that exclude each other": (KEPT, f"{KEPT} having count(*) > 1 and count(*) <= 1"),
    "a HAVING with a key in it": (KEPT, f"{KEPT} having max(v) > 3 or k = 'a'"),
    "results in another order than in the list below": (
        INNER + "select n, s from c",
        INNER + "select s, n from c",
    ),
    "a literal that Spark casts to the same value": (
        aggregation("k, count(*) as n", "where d > 1.5"),
        aggregation("k, count(*) as n", "where d > 1.50"),
    ),
    "a condition that follows from another one": (
        aggregation("k, count(*) as n", "where v = 3"),
        aggregation("k, count(*) as n", "where v = 3 and v > 2"),
    ),
    "a count of a column that is never null": (
        aggregation("k, count(*) as n", "where v > 2"),
        aggregation("k, count(v) as n", "where v > 2"),
    ),
    "a column twice, and two columns": (
        f"select distinct k, k from {ORDERS}",
        f"select distinct k as a, k as b from {ORDERS}",
    ),
    "try_cast": (aggregation("cast(d as int) as i", keys="1"), aggregation("try_cast(d as int) as i", keys="1")),
    "a random number": (aggregation("k, sum(v) as s"), aggregation("k, sum(v * rand()) as s")),
    "a string with a backslash": (
        aggregation("k, count(*) as n", "where k rlike '\\\\d'"),
        aggregation("k, count(1) as n", "where k rlike '\\\\d'"),
    ),
}

TIMES = f"with t as (select ts as t, ts, k from {ORDERS}) select /*+ WATERMARK(t, '10 minutes') */ window.start as at, "
SINCE = "count(*) as n from t where t > timestamp '2024-01-01' group by window(t, '5 minutes')"
FREE = f"(select k, v, id from {REFUNDS}) r on o.k = r.k and coalesce(o.v, 0) < coalesce(r.v, 0) + coalesce(r.id, 0)"
ONLY_SPARK_CAN_TELL |= {
    "arithmetic with a text": (aggregation("k, sum(v) + 1 as s"), aggregation("k, sum(v) + '1' as s")),
}

HOURS = (
    f"with o as (select /*+ WATERMARK(ts, '10 minutes') */ window.start as at, k, sum(v) as s from {ORDERS} group by "
)
HOURS += "window(ts, '5 minutes'), k) select at, k, s from o"
ONCE = ", deduplicate=['at', 'k']"
APPENDED = (
    Edit("under", "", "", HOURS, HOURS.replace("sum(", "max("), "", "append", config_before=ONCE, config_after=ONCE),
    Edit(
        "free",
        "",
        "",
        f"select o.id from {ORDERS} o join {FREE}",
        f"select o.id from {ORDERS} o join {FREE.replace('k, v, id', 'k, id, v')}",
        "",
        "append",
    ),
    Edit("times", "", "", TIMES + SINCE, TIMES + SINCE.replace("t >", "ts >"), "", "append"),
)
"""An aggregate below another operator with state; columns of a join that only conditions use; two columns with the time
of a watermark.
"""

OPERANDS = "aggregates in the order of operands"
OTHERS = {OPERANDS: (aggregation("k, sum(v) + count(*) as n"), aggregation("k, count(*) + sum(v) as n"))}
COUNTS = "k, count(v) as n"
FILTERS = {
    "another filter on a column": ("v > 1", "v > 3"),
    "a filter that selects more": ("v > 1", "v > 1 or g = 'x'"),
    "nulls": ("v is null", "v is not null"),
    "a null that passes": ("g <> 'x'", "g <> 'x' or g is null"),
    "a null-safe comparison": ("v <> 2", "not (v <=> 2)"),
    "nested conditions": ("not (v > 1 and (g = 'x' or d < 1.5))", "not (v > 1 and (g = 'x' or d <= 1.5))"),
    "a longer list": ("v in (1, 2)", "v in (1, 2, 3)"),
    "a key and another column": ("v > 1", "v > 1 and (k = 'a' or v > 2)"),
}
"""Filters of which some row passes only one."""

SAME_FILTERS = {
    "a filter that follows from another one": ("v > 1", "v > 1 and v > 0"),
    "a negated comparison": ("v > 1", "not v <= 1"),
    "a list of one": ("v = 1", "v in (1)"),
    "a literal of another type": ("v > 1", "v > 1.5 or v = 2"),
    "a filter on keys in update mode": ("v > 1", "v > 1 and k <> 'a'"),
    "a filter on keys that another one selects": ("k in ('a', 'b')", "k = 'a'"),
    "a filter that nothing passes": ("v > 1", "v > 1 and v < 0"),
    "filters that nothing passes": ("v > 1 and v < 0", "v = 1 and v = 2"),
    "a comparison of columns": ("v > 1", "v > id"),
    "a text as a number": ("v > 1", "v > '3'"),
    "a time": ("v > 1", "ts > timestamp '2024-01-01'"),
}
"""Filters that Spark may take for the same ones, or that are not plain."""


def counted(pairs: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Returns aggregations with these filters."""
    where = {name: [aggregation(COUNTS, f"where {each}") for each in both] for name, both in pairs.items()}
    return {name: (before, after) for name, (before, after) in where.items()}


OTHERS |= counted(FILTERS)
ONLY_SPARK_CAN_TELL |= counted(SAME_FILTERS)
SAME = {
    "a repeated key": (TWO_KEYS, TWO_KEYS.replace("by k, g", "by k, g, k")),
    "all keys": (KEPT, KEPT.replace("by k", "by all")),
    "names of columns in an alias": (KEPT, KEPT.replace(f"{ORDERS} ", f"{ORDERS} as o(id, ts, k, g, v, d)")),
    "UNION and DISTINCT": (
        f"select k from {ORDERS} union select k from {REFUNDS}",
        f"select distinct k from (select k from {ORDERS} union all select k from {REFUNDS})",
    ),
    "a HAVING on a key and a WHERE": (
        aggregation("k, count(*) as n", "where k > 'a'"),
        aggregation("k, count(*) as n", having="having k > 'a'"),
    ),
    "another function of the time behind": (
        aggregation("k, count(*) as n, now() as at"),
        aggregation("k, count(*) as n, current_date() as at"),
    ),
    "a CTE that hides a CTE": (
        f"with o as (select * from {ORDERS}) select k, sum(v) as s from o group by k",
        f"with o as (select * from {ORDERS}), p as (select * from o) select k, sum(v) as s from p group by k",
    ),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """The verdicts on the edits above."""
    edits = {
        name: Edit(f"pair_{index}", "", name, before, after, "")
        for index, (name, (before, after)) in enumerate((ONLY_SPARK_CAN_TELL | SAME | OTHERS).items())
    }
    found = planned(list(edits.values()), tmp_path_factory.mktemp("pairs"))
    return {name: found[edit.name].verdict for name, edit in edits.items()}


def test_an_operator_below_another_one_needs_spark(tmp_path: Path) -> None:
    """What is above an operator decides what it stores."""
    found = planned(list(APPENDED), tmp_path)
    assert {name: verdict.verdict for name, verdict in found.items()} == {
        edit.name: Verdict.UNDECIDED for edit in APPENDED
    }


@pytest.mark.parametrize("name", FILTERS)
def test_filters_that_select_other_rows_are_refused(name: str, pairs: dict[str, Verdict]) -> None:
    """A row that passes only one of two filters decides, however Spark writes them."""
    assert pairs[name] is Verdict.REFUSE


@pytest.mark.parametrize("name", ONLY_SPARK_CAN_TELL)
def test_what_the_optimizer_can_change_needs_spark(name: str, pairs: dict[str, Verdict]) -> None:
    """The SQL does not show what Spark's optimizer makes of it."""
    assert pairs[name] is Verdict.UNDECIDED


@pytest.mark.parametrize("name", SAME)
def test_the_same_state_in_other_words_resumes(name: str, pairs: dict[str, Verdict]) -> None:
    """Two ways to write the same query have the same state."""
    assert pairs[name] is Verdict.RESUME
