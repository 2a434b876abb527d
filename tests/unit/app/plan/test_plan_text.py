"""The text, JSON and Markdown of a plan."""

from __future__ import annotations

import json

from sqlstream.app.plan.plan_text import plan_json, plan_markdown, plan_text
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.state.changed_columns import Break, BreakKind
from sqlstream.state.changes import Change
from sqlstream.state.verdicts import ProjectPlan, QueryVerdict, Verdict

FINDING = Finding(
    "state-change", "the SQL of `totals` changed", "the aggregates changed", "undo", Location("models/totals.sql", 2, 8)
)
REFUSED = QueryVerdict(
    "totals",
    Verdict.REFUSE,
    "the aggregates changed from `a | b` to `c`",
    version=1,
    batches=12,
    findings=(FINDING,),
    changes=(Change("the SQL of `totals` changed", "totals"),),
    frozen=("spark.sql.shuffle.partitions stays 2",),
    sql=(("totals", "select a\nfrom b\n", "select c\nfrom b\n"),),
    reads_again=("shop.orders: 2 files, 1.2 kB",),
    shared_with=(("clean", ("counts", "plain")),),
    columns=("column `a` was removed",),
    breaks=(
        Break(BreakKind.SINK, "lake", "column `a` was removed"),
        Break(BreakKind.EXPOSURE, "board", "it reads `totals`, whose column `a` was removed", "Ada"),
    ),
)
RESUMED = QueryVerdict(
    "counts", Verdict.RESUME, "its state stays", 2, 1, changes=(Change("the SQL of `counts` changed", "counts"),)
)
PLAN = ProjectPlan(
    "prod",
    (QueryVerdict("one", Verdict.UNCHANGED, "nothing"), RESUMED, REFUSED, QueryVerdict("two", Verdict.UNCHANGED, "no")),
    "4.3.0",
)


def test_the_text_begins_with_what_is_refused() -> None:
    """Refused queries come first, with their finding; unchanged ones share a line."""
    assert plan_text(PLAN) == (
        "refuse: totals (v1, 12 batches)\n"
        "  models/totals.sql:2:8: [state-change] the SQL of `totals` changed\n"
        "    why: the aggregates changed\n"
        "    fix: undo\n"
        "  SQL of totals:\n"
        "    -select a\n"
        "    +select c\n"
        "     from b\n"
        "  output: column `a` was removed\n"
        "  setting: spark.sql.shuffle.partitions stays 2\n"
        "  a full refresh would read shop.orders: 2 files, 1.2 kB\n"
        "  clean is also read by counts, plain\n"
        "  breaks sink lake: column `a` was removed\n"
        "  breaks exposure board (owner: Ada): it reads `totals`, whose column `a` was removed\n"
        "\n"
        "resume: counts (v2, 1 batch)\n"
        "  its state stays\n"
        "  the SQL of `counts` changed\n"
        "\n"
        "unchanged: one, two\n"
        "\n"
        "Plan for target prod (Spark 4.3.0 compared the plans): 2 unchanged, 1 resume, 1 refuse"
    )


def test_distant_changes_of_sql_are_apart() -> None:
    """A line of dots replaces unchanged lines between two differences, and a removed comment is a difference."""
    before = "-- old\nselect a,\n  b,\n  c\nfrom d\nwhere e\n"
    after = "select a,\n  b,\n  c\nfrom d\nwhere f\n"
    query = QueryVerdict("one", Verdict.RESUME, "its state stays", sql=(("one", before, after),))
    lines = ["--- old", " select a,", "...", " from d", "-where e", "+where f"]

    assert "\n".join(f"    {line}" for line in lines) in plan_text(ProjectPlan("prod", (query,)))
    assert "\n".join(["# one", *lines, "```"]) in plan_markdown(ProjectPlan("prod", (query,)))


def test_a_setting_without_effect_is_shown_for_unchanged_queries() -> None:
    """A checkpoint keeps its number of partitions, even if the target says another one."""
    same = QueryVerdict("one", Verdict.UNCHANGED, "nothing", frozen=("spark.sql.shuffle.partitions stays 2",))
    text = plan_text(ProjectPlan("prod", (same,)))
    assert text.startswith("unchanged: one\n  setting of one: spark.sql.shuffle.partitions stays 2\n\n")


def test_the_json_has_all_facts() -> None:
    """Each query has its verdict, changes, SQL and findings."""
    found = json.loads(plan_json(PLAN))

    assert (found["target"], found["spark_version"], found["refused"]) == ("prod", "4.3.0", True)
    assert [query["verdict"] for query in found["queries"]] == ["unchanged", "resume", "refuse", "unchanged"]
    refused = found["queries"][2]
    assert refused["sql"] == [{"model": "totals", "before": "select a\nfrom b\n", "after": "select c\nfrom b\n"}]
    assert refused["shared_with"] == {"clean": ["counts", "plain"]}
    assert refused["findings"][0]["code"] == "state-change"


def test_the_markdown_is_a_table_with_the_sql() -> None:
    """Unchanged queries are left out, and `|` does not end a cell."""
    text = plan_markdown(PLAN)

    assert text.startswith("### Plan for target prod")
    assert "| `totals` | **refuse** | the aggregates changed from `a \\| b` to `c` |" in text
    assert "`one`" not in text
    assert "```diff\n# totals\n-select a\n+select c\n from b\n```" in text


def test_an_empty_plan() -> None:
    """A selection by `state:` can be empty."""
    assert plan_text(ProjectPlan("local", ())) == "Plan for target local (without Spark): no queries"
    off = Finding("rules-off", "rules do not run", "why", "fix", severity=Severity.WARNING)
    plan = ProjectPlan("local", (), warnings=(off,))
    assert plan_text(plan).splitlines()[0] == "warning: [rules-off] rules do not run"
    assert json.loads(plan_json(plan))["findings"] == [off.as_json()]
    assert "[rules-off] rules do not run" in plan_markdown(plan)
