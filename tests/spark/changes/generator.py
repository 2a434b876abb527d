"""Random edits of random queries, some of them cosmetic, for Spark to judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.spark.changes.edits import ORDERS, REFUNDS, Edit
from tests.spark.changes.random_queries import (
    AGGREGATES,
    CONDITIONS,
    HAVINGS,
    JOIN_KEYS,
    KEYS,
    SEMI,
    Query,
    random_query,
    sql_of,
)


def random_edit(random: Random, number: int) -> Edit:
    """Returns a random edit, with one to three changes."""
    before = after = random_query(random)
    changes = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choice(_CHANGES[before.kind])
        after = change(after, random)
        changes.append(change.__name__.strip("_"))
    modes = {before.mode, after.mode}
    return Edit(
        f"edit_{number}", before.kind, ", ".join(changes), sql_of(before), sql_of(after), "", before.mode,
        after.mode if len(modes) > 1 else None, _config(before), _config(after),
        compared=(3,) if after.union and not before.union else (1, 2, 3) if len(modes) > 1 and "append" in modes else (2, 3),
    )  # fmt: skip


def _config(query: Query) -> str:
    return f", deduplicate=[{', '.join(map(repr, query.keys))}]" if query.kind == "distinct" else ""


def _rename(query: Query, _random: Random) -> Query:
    return replace(query, names="renamed" if query.names == "o" else "o")


def _shuffle_conditions(query: Query, random: Random) -> Query:
    return replace(query, conditions=tuple(random.sample(query.conditions, len(query.conditions))))


def _add_condition(query: Query, random: Random) -> Query:
    return replace(query, conditions=(*query.conditions, random.choice(query.possible_conditions)))


def _replace_condition(query: Query, random: Random) -> Query:
    return replace(query, conditions=(*query.conditions[:-1], random.choice(query.possible_conditions)))


def _drop_condition(query: Query, _random: Random) -> Query:
    return replace(query, conditions=query.conditions[:-1])


def _shuffle_keys(query: Query, random: Random) -> Query:
    return replace(query, keys=tuple(random.sample(query.keys, len(query.keys))))


def _replace_key(query: Query, random: Random) -> Query:
    pool: tuple[str, ...] = JOIN_KEYS if query.is_join or query.kind == "distinct" else KEYS
    if query.kind == "windows":
        pool = tuple(key for key in pool if key != "date(ts)")
    having = query.having if query.having and not query.having.startswith("k") else None
    unused = [key for key in pool if key not in query.keys] or list(query.keys[:1])
    return replace(query, keys=(*query.keys[1:], random.choice(unused)), having=having)


def _add_key(query: Query, random: Random) -> Query:
    return replace(query, keys=(*query.keys, random.choice(JOIN_KEYS)) if len(query.keys) < 2 else query.keys[:1])


def _change_result(query: Query, random: Random) -> Query:
    (call, _), *others = query.aggregates
    results = ("{}", "coalesce({}, null)", "cast({} as string)")
    return replace(query, aggregates=((call, random.choice(results)), *others))


def _replace_aggregate(query: Query, random: Random) -> Query:
    (_, result), *others = query.aggregates
    return replace(query, aggregates=((random.choice(AGGREGATES), result), *others))


def _add_aggregate(query: Query, random: Random) -> Query:
    return replace(query, aggregates=(*query.aggregates, (random.choice(AGGREGATES), "{}")))


def _repeat_aggregate(query: Query, random: Random) -> Query:
    return replace(query, aggregates=(*query.aggregates, random.choice(query.aggregates)))


def _shuffle_aggregates(query: Query, random: Random) -> Query:
    return replace(query, aggregates=tuple(random.sample(query.aggregates, len(query.aggregates))))


def _change_having(query: Query, random: Random) -> Query:
    pool = [each for each in HAVINGS if not each.startswith("k") or ("k" in query.keys and query.kind == "aggregation")]
    return replace(query, having=None if query.having else random.choice(pool))


def _change_style(query: Query, random: Random) -> Query:
    return replace(query, style=random.choice((0, 1, 2)))


def _add_unused(query: Query, _random: Random) -> Query:
    return replace(query, unused=("v + 1 as unused",) if not query.union else ())


def _change_union(query: Query, random: Random) -> Query:
    return replace(query, union=() if query.union else (random.choice(CONDITIONS),), unused=())


def _change_mode(query: Query, _random: Random) -> Query:
    changed = {"update": "complete", "complete": "update", "append": "update"}[query.mode]
    return replace(query, mode="append" if query.kind == "windows" and query.mode == "update" else changed)


def _change_span(query: Query, random: Random) -> Query:
    return replace(
        query, span=random.choice(("'5 minutes'", "'300 seconds'", "'10 minutes'", "'10 minutes', '5 minutes'"))
    )


def _change_delay(query: Query, random: Random) -> Query:
    return replace(query, delay=random.choice(("10 minutes", "600 seconds", "20 minutes", "1 minute")))


def _change_bound(query: Query, random: Random) -> Query:
    return replace(query, bound=random.choice((5, 10, 30) if query.kind == "join" else (5, 10, 30, None)))


def _change_join(query: Query, random: Random) -> Query:
    return query if query.join == SEMI else replace(query, join=random.choice(("join", "left join")))


def _change_other(query: Query, _random: Random) -> Query:
    return replace(query, other=ORDERS if query.other == REFUNDS else REFUNDS)


def _change_equality(query: Query, _random: Random) -> Query:
    return replace(query, equality="<=>" if query.equality == "=" else "=")


def _change_columns(query: Query, random: Random) -> Query:
    if query.kind == "distinct":
        return replace(query, columns=("id", "k", "g", random.choice(("v", "v * 2 as v", "upper(k) as u"))))
    pool = ("o.id", "o.k", "o.v", *(("r.v", "r.k", "r.v + 1") if query.join != SEMI else ("o.v + 1",)))
    return replace(query, columns=(*query.columns[:-1], random.choice(pool)))


def _shuffle_columns(query: Query, random: Random) -> Query:
    return replace(query, columns=tuple(random.sample(query.columns, len(query.columns))))


_COMMON = (_shuffle_conditions, _add_condition, _add_condition, _drop_condition, _replace_condition, _replace_key)
_GROUPED = (
    *(_rename, *_COMMON, _shuffle_keys, _change_result, _change_result, _replace_aggregate, _add_aggregate),
    *(_repeat_aggregate, _shuffle_aggregates, _change_having, _change_style, _add_unused),
)
_JOINED = (
    *(_rename, *_COMMON, _shuffle_keys, _add_key, _change_bound, _change_columns, _shuffle_columns),
    *(_change_other, _change_equality),
)
_CHANGES: dict[str, tuple[Callable[[Query, Random], Query], ...]] = {
    "aggregation": (*_GROUPED, _change_union, _change_mode),
    "windows": (*_GROUPED, _change_span, _change_delay, _change_mode),
    "join": (*_JOINED, _change_join, _change_delay),
    "free": _JOINED,
    "distinct": (*_COMMON, _shuffle_keys, _change_columns, _add_unused),
}
