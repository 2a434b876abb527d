"""Random edits of literals, types, subqueries, hints, declarations and settings, for Spark to judge.

Each has a place in a query, and one of the values that it has there before and another one after; some of them mean the
same. The settings are those of a part of `make changes`. Filters do not only choose keys: a query that reads fewer keys continues
rightly, with any filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.spark.changes.closed_edits import JSON
from tests.spark.changes.edits import ORDERS, REFUNDS, Edit

NAMES = "{{ ref('names') }}"


@dataclass(frozen=True)
class Place:
    """A part of a query with `{}` for a value. `values` are groups of values that mean the same."""

    kind: str
    text: str
    values: tuple[tuple[str, ...], ...]


# fmt: off
FILTERS = (
    Place("literal", "v > if(array_contains({}, k), 0, 2)", (("array('a', 'b')", "array('a','b')"), ("array('b', 'c')",), ("array('a,b')", "array(concat('a', ',b'))"), ("array('a', 'd,b')",))),
    Place("literal", "v > coalesce({}[k], 2)", (("map('a', 0, 'b', 1)", "map('a',0,'b',1)"), ("map('a', 0, 'c', 4)",), ("map('a, b', 1)",), ("map('b', 0, 'd', 1)",))),
    Place("literal", "named_struct('p', k, 'q', g) = {}", (("named_struct('p', 'a', 'q', 'x')", "named_struct('p','a','q','x')"), ("named_struct('p', 'b', 'q', 'y')",))),
    Place("literal", "ts > {}", (("timestamp'2024-01-01 12:10:00'", "timestamp'2024-01-01 13:10:00+01:00'"), ("timestamp'2024-01-01 12:00:30'",), ("timestamp'2024-01-01 12:16:00'",))),
    Place("literal", "v > if(cast(k as binary) = {}, 0, 2)", (("x'61'", "X'61'"), ("x'62'",), ("x'6162'",))),
    Place("literal", "v > if(k in ('a', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'l', {}), 0, 2)", (("'b', 'm'", "'m', 'b'"), ("'b, m', 'n'",), ("'c', 'm'",))),
    Place("literal", "d > {}", (("1.5", "1.50", "1.5bd"), ("1.25",), ("2.5",))),
    Place("subquery", f"v > (select {{}} from {NAMES})", (("count(*) - 2", "count(1) - 2"), ("max(length(name)) - 2",), ("min(length(name)) - 4",))),
    Place("subquery", f"v > if(exists (select 1 from {NAMES} where {{}}), 1, 0)", (("name = 'alpha'", "'alpha' = name"), ("name = 'omega'",))),
    Place("subquery", "v > (select max(x) from values {} as t(x))", (("(1), (2)", "(1),(2)"), ("(1), (4)",), ("(0)",))),
    Place("type", f"from_json({JSON}, {{}} > 2", (("'a int').a", "'a INT').a"), ("'b int').b",), ("'x struct<a: int>').x.a",), ("'x struct<b: int>').x.b",))),
)
KEYS = (
    Place("literal", "{}[k]", (("map('a', 'p', 'b', 'q')", "map('a','p','b','q')"), ("map('a', 'p', 'b', 'p')",), ("map('a', 'p', 'c', 'q')",))),
    Place("type", "to_json(named_struct({}))", (("'v', v", "'v',v"), ("'w', v",), ("'v', id",))),
    Place("type", f"from_json({JSON}, {{}}", (("'a int').a", "'a INT').a"), ("'b int').b",), ("'a string').a",))),
    Place("type", "cast(cast(d as {}) as string)", (("decimal(10, 2)", "decimal(10,2)"), ("decimal(10, 1)",), ("int",))),
    Place("literal", "concat(k, {})", (("'a,b'", "\"a,b\""), ("'a'",), ("',b'",))),
)
AGGREGATES = (
    Place("behind", "percentile(v, {})", (("0.5", "0.9", "0.25"),)),
    Place("behind", "percentile_approx(v, {}, 100)", (("0.5", "0.9"),)),
    Place("literal", "sum(element_at({}, 1) * v)", (("array(2, 3)", "array(2,3)"), ("array(3, 2)",))),
    Place("literal", "sum(crc32(concat(g, {})))", (("'x'", "\"x\""), ("'y'",))),
    Place("subquery", f"sum(v * (select {{}} from {NAMES}))", (("count(*)", "count(1)"), ("max(length(name))",))),
)
HINTS = Place("hint", "{}", (("", "/*+ REPARTITION(3) */", "/*+ REPARTITION(2, k) */", "/*+ REBALANCE */"),))
BELOW = Place("order", "{}", ((
    f"(select k, g, v, id, d, ts from {ORDERS} union all select k, g, v, id, d, ts from {REFUNDS} where v > 1)",
    f"(select k, g, v, id, d, ts from {REFUNDS} where v > 1 union all select k, g, v, id, d, ts from {ORDERS})",
), (ORDERS,)))
# fmt: on

SETTINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("spark.sql.autoBroadcastJoinThreshold", ("-1", "10485760")),
    ("spark.sql.adaptive.enabled", ("true", "false")),
    ("spark.sql.codegen.wholeStage", ("true", "false")),
    ("spark.sql.files.maxPartitionBytes", ("1mb", "128mb")),
    ("spark.sql.streaming.noDataMicroBatches.enabled", ("true", "false")),
    ("spark.sql.parser.escapedStringLiterals", ("false", "true")),
    ("spark.sql.optimizer.excludedRules", ("", "org.apache.spark.sql.catalyst.optimizer.CombineFilters")),
    ("spark.sql.csv.parser.columnPruning.enabled", ("true", "false")),
    ("spark.sql.parquet.enableVectorizedReader", ("true", "false")),
)
"""Settings that change no result of the queries here, so that each refusal because of them is in vain."""


def random_settings(random: Random) -> tuple[dict[str, str], dict[str, str]]:
    """Returns settings before and after: some added, some removed, some changed."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for name, values in random.sample(SETTINGS, 4):
        old, new = random.sample([*values, None], 2)
        before |= {name: old} if old is not None else {}
        after |= {name: new} if new is not None else {}
    return before, after


def random_closed_edit(random: Random, number: int) -> Edit:
    """Returns a random edit of one place of a query."""
    parts = {"key": "k", "call": "count(*)", "where": "v > 0", "hint": "", "below": ORDERS}
    places = {"key": random.choice(KEYS), "call": random.choice(AGGREGATES), "where": random.choice(FILTERS)}
    places |= {"hint": HINTS, "below": BELOW}
    name = random.choice(("key", "call", "where", "where", "where", "hint", "below"))
    place = places[name]
    old, new = _values(random, place)
    texts: list[str] = []
    for value in (old, new):
        found = {**parts, name: place.text.replace("{}", value)}
        texts.append(
            f"select {found['hint']} {found['key']} as a, {found['call']} as m from {found['below']} "
            f"where {found['where']} group by {found['key']}"
        )
    adds_source = REFUNDS in texts[1] and REFUNDS not in texts[0]  # its first rows come in the batch after the edit
    return Edit(
        *(f"closed_{number}", place.kind, f"{old} to {new}", texts[0], texts[1], ""),
        compared=(3,) if adds_source else (2, 3),
    )


def _values(random: Random, place: Place) -> tuple[str, str]:
    """Returns two values, which mean the same in about a third of the cases."""
    groups = [group for group in place.values if len(group) > 1]
    if len(place.values) == 1 or (groups and random.random() < 1 / 3):
        one, other = random.sample(random.choice(groups), 2)
        return one, other
    first, second = random.sample(place.values, 2)
    return random.choice(first), random.choice(second)
