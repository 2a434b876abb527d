"""Random edits of random queries, some of them cosmetic, for Spark to judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from edits import ORDERS, REFUNDS, Edit

_KEYS = ("k", "g", "upper(k)", "v", "id % 3", "date(ts)", "coalesce(g, 'none')", "length(k)")
_AGGREGATES = (
    *("count(*)", "sum(v)", "max(v)", "min(id)", "avg(d)", "count(g)", "sum(v) filter (where v > 2)", "max(k)"),
    *("sum(v * 2)", "sum(coalesce(v, 0))", "bool_or(v > 3)", "count_if(v > 2)", "min(g)", "sum(id)"),
)
_CONDITIONS = (
    *("v > 1", "v > 2", "v is not null", "k <> 'a'", "g = 'x'", "id < 35", "d > 1.5", "k like 'a%'"),
    *("v between 1 and 6", "k in ('a', 'b', 'c')", "not (v = 3)", "v > 1 or g = 'y'"),
)
_HAVINGS = ("count(*) > 1", "count(*) > 2", "max(v) > 3", "k > 'a'", "k is not null")
_RESULTS = ("{}", "{}", "{}", "{} + 1", "cast({} as string)", "coalesce({}, 0)")


@dataclass(frozen=True)
class Query:
    """A random query: an aggregation (with windows if it has a `span`), a join, or one without duplicates."""

    kind: str
    keys: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, str], ...] = ()
    """Each with the expression around it."""
    conditions: tuple[str, ...] = ()
    having: str | None = None
    union: tuple[str, ...] = ()
    """The conditions of a second branch with refunds; empty: no such branch."""
    span: str | None = None
    delay: str = "10 minutes"
    join: str = "join"
    bound: int = 30
    columns: tuple[str, ...] = ()
    names: str = "o"
    style: int = 0
    mode: str = "update"
    unused: tuple[str, ...] = field(default=())


def random_edit(random: Random, number: int) -> Edit:
    """Returns a random edit, with one to three changes."""
    before = _query(random)
    after = before
    changes = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choice(_CHANGES[before.kind])
        after = change(after, random)
        changes.append(change.__name__.strip("_"))
    name = f"edit_{number}"
    more = tuple(
        f", deduplicate=[{', '.join(map(repr, query.keys))}]" if query.kind == "distinct" else ""
        for query in (before, after)
    )
    return Edit(
        name, before.kind, ", ".join(changes), _sql(before), _sql(after), "", before.mode,
        after.mode if after.mode != before.mode else None, more[0], more[1],
        compared=(3,) if after.union and not before.union else (1, 2, 3) if before.mode != after.mode and "append" in (before.mode, after.mode) else (2, 3),
    )  # fmt: skip


def _query(random: Random) -> Query:
    kind = random.choice(
        ("aggregation", "aggregation", "aggregation", "windows", "windows", "join", "join", "distinct")
    )
    conditions = tuple(random.sample(_CONDITIONS, random.choice((0, 0, 1, 2))))
    if kind == "distinct":
        return Query(
            kind,
            keys=tuple(random.sample(("id", "k", "g"), random.choice((1, 2)))),
            conditions=conditions,
            columns=("id", "k", "g", "v"),
            mode="append",
        )
    if kind == "join":
        columns = tuple(random.sample(("o.id", "o.k", "o.v", "r.v", "r.k", "o.ts"), random.choice((2, 3))))
        kinds = ("join", "join", "left join", "left semi join")
        join = random.choice(kinds)
        if join == "left semi join":
            columns = ("o.id", *(column for column in columns if column.startswith("o.") and column != "o.id"))
        return Query(
            kind,
            keys=(random.choice(("id", "k")),),
            join=join,
            columns=columns,
            bound=random.choice((5, 30)),
            mode="append",
        )
    aggregates = tuple(
        (each, random.choice(_RESULTS[:3])) for each in random.sample(_AGGREGATES, random.choice((1, 2, 3)))
    )
    keys = tuple(random.sample(_KEYS, random.choice((1, 1, 2))))
    having = random.choice(_HAVINGS) if random.random() < 0.2 else None
    if having and having.startswith("k") and "k" not in keys:
        having = None
    if kind == "windows":
        keys = keys[: random.choice((0, 1))]
        keys = tuple(key for key in keys if key != "date(ts)")
        having = having if having and not having.startswith("k") else None
        return Query(
            kind,
            keys,
            aggregates,
            conditions,
            having,
            span=random.choice(("'5 minutes'", "'10 minutes'", "'10 minutes', '5 minutes'")),
            mode=random.choice(("append", "update")),
        )
    union = (random.choice(_CONDITIONS),) if random.random() < 0.15 else ()
    return Query(
        kind,
        keys,
        aggregates,
        conditions,
        having,
        union,
        mode=random.choice(("update", "update", "complete")),
        style=random.choice((0, 1, 2)),
    )


def _sql(query: Query) -> str:
    return {"join": _join_sql, "distinct": _distinct_sql}.get(query.kind, _aggregation_sql)(query)


def _where(conditions: tuple[str, ...]) -> str:
    return f" where {' and '.join(conditions)}" if conditions else ""


def _aggregation_sql(query: Query) -> str:
    columns = ("id", "ts", "k", "g", "v", "d")
    hint = f"/*+ WATERMARK(ts, '{query.delay}') */ " if query.span else ""
    keys = [*([f"window(ts, {query.span})"] if query.span else []), *query.keys]
    selected = [
        *(["window.start as at"] if query.span else []),
        *(f"{key} as key_{index}" for index, key in enumerate(query.keys)),
    ]
    selected += [f"{result.format(call)} as a{index}" for index, (call, result) in enumerate(query.aggregates)]
    if query.style % 2:
        selected.reverse()
    having = f" having {query.having}" if query.having else ""
    if query.union or query.style == 2:
        listed = ", ".join((*columns, *query.unused))
        branch = f" union all select {', '.join(columns)} from {REFUNDS}{_where(query.union)}" if query.union else ""
        name = f"{query.names}_rows"
        return (
            f"with {name} as (select {listed} from {ORDERS}{_where(query.conditions)}{branch})\n"
            f"select {hint}{', '.join(selected)} from {name} group by {', '.join(keys)}{having}"
        )
    return f"select {hint}{', '.join(selected)} from {ORDERS} as {query.names}{_where(query.conditions)} group by {', '.join(keys)}{having}"


def _join_sql(query: Query) -> str:
    key = query.keys[0]
    other = query.names + "x"
    columns = ", ".join(f"{column} as c{index}" for index, column in enumerate(query.columns))
    text = (
        f"select /*+ WATERMARK(o.ts, '{query.delay}'), WATERMARK(r.ts, '{query.delay}') */ {columns} "
        f"from {ORDERS} o {query.join} {REFUNDS} r on o.{key} = r.{key} and "
        f"r.ts between o.ts - interval {query.bound} minutes and o.ts + interval {query.bound} minutes{_where(query.conditions)}"
    )
    return text if query.names == "o" else text.replace("o.", f"{other}.").replace("} o ", f"}} {other} ")


def _distinct_sql(query: Query) -> str:
    return f"select {', '.join((*query.columns, *query.unused))} from {ORDERS}{_where(query.conditions)}"


def _rename(query: Query, _random: Random) -> Query:
    return replace(query, names="renamed" if query.names == "o" else "o")


def _shuffle_conditions(query: Query, random: Random) -> Query:
    return replace(query, conditions=tuple(random.sample(query.conditions, len(query.conditions))))


def _add_condition(query: Query, random: Random) -> Query:
    pool: tuple[str, ...] = ("r.v > 1", "o.v > 1", "o.v < r.v", "o.k <> 'a'") if query.kind == "join" else _CONDITIONS
    pool = tuple(each for each in pool if not (query.join == "left semi join" and "r." in each))
    return replace(query, conditions=(*query.conditions, random.choice(pool)))


def _drop_condition(query: Query, _random: Random) -> Query:
    return replace(query, conditions=query.conditions[:-1])


def _shuffle_keys(query: Query, random: Random) -> Query:
    return replace(query, keys=tuple(random.sample(query.keys, len(query.keys))))


def _replace_key(query: Query, random: Random) -> Query:
    pool: tuple[str, ...] = {"join": ("id", "k"), "distinct": ("id", "k", "g")}.get(query.kind, _KEYS)
    if query.kind == "windows":
        pool = tuple(key for key in pool if key != "date(ts)")
    having = query.having if query.having and not query.having.startswith("k") else None
    return replace(
        query,
        keys=(*query.keys[1:], random.choice([key for key in pool if key not in query.keys] or list(query.keys[:1]))),
        having=having,
    )


def _change_result(query: Query, random: Random) -> Query:
    (call, _), *others = query.aggregates
    results = ("{}", "coalesce({}, null)", "cast({} as string)")
    return replace(query, aggregates=((call, random.choice(results)), *others))


def _replace_aggregate(query: Query, random: Random) -> Query:
    (_, result), *others = query.aggregates
    return replace(query, aggregates=((random.choice(_AGGREGATES), result), *others))


def _add_aggregate(query: Query, random: Random) -> Query:
    return replace(query, aggregates=(*query.aggregates, (random.choice(_AGGREGATES), "{}")))


def _repeat_aggregate(query: Query, random: Random) -> Query:
    return replace(query, aggregates=(*query.aggregates, random.choice(query.aggregates)))


def _shuffle_aggregates(query: Query, random: Random) -> Query:
    return replace(query, aggregates=tuple(random.sample(query.aggregates, len(query.aggregates))))


def _change_having(query: Query, random: Random) -> Query:
    pool = [
        each for each in _HAVINGS if not each.startswith("k") or ("k" in query.keys and query.kind == "aggregation")
    ]
    return replace(query, having=None if query.having else random.choice(pool))


def _change_style(query: Query, random: Random) -> Query:
    return replace(query, style=random.choice((0, 1, 2)))


def _add_unused(query: Query, _random: Random) -> Query:
    return replace(query, unused=("v + 1 as unused",) if not query.union else ())


def _change_union(query: Query, random: Random) -> Query:
    return replace(query, union=() if query.union else (random.choice(_CONDITIONS),), unused=())


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
    return replace(query, bound=random.choice((5, 10, 30)))


def _change_join(query: Query, random: Random) -> Query:
    if query.join == "left semi join":
        return query
    return replace(query, join=random.choice(("join", "left join")))


def _change_columns(query: Query, random: Random) -> Query:
    if query.kind == "distinct":
        return replace(query, columns=("id", "k", "g", random.choice(("v", "v * 2 as v", "upper(k) as u"))))
    pool = ("o.id", "o.k", "o.v", *(("r.v", "r.k", "r.v + 1") if query.join != "left semi join" else ("o.v + 1",)))
    return replace(query, columns=(*query.columns[:-1], random.choice(pool)))


def _shuffle_columns(query: Query, random: Random) -> Query:
    return replace(query, columns=tuple(random.sample(query.columns, len(query.columns))))


_COMMON = (_shuffle_conditions, _add_condition, _drop_condition, _replace_key)
_GROUPED = (
    *(_rename, *_COMMON, _shuffle_keys, _change_result, _change_result, _replace_aggregate, _add_aggregate),
    *(_repeat_aggregate, _shuffle_aggregates, _change_having, _change_style, _add_unused),
)
_CHANGES: dict[str, tuple[Callable[[Query, Random], Query], ...]] = {
    "aggregation": (*_GROUPED, _change_union, _change_mode),
    "windows": (*_GROUPED, _change_span, _change_delay, _change_mode),
    "join": (
        _rename,
        _add_condition,
        _replace_key,
        _change_bound,
        _change_join,
        _change_columns,
        _shuffle_columns,
        _change_delay,
    ),
    "distinct": (*_COMMON, _shuffle_keys, _change_columns, _add_unused),
}
