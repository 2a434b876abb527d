"""Random queries with state: aggregations, joins with and without a watermark, and queries without duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.spark.changes.edits import ORDERS, REFUNDS

KEYS = ("k", "g", "upper(k)", "v", "id % 3", "date(ts)", "coalesce(g, 'none')", "length(k)")
AGGREGATES = (
    *("count(*)", "sum(v)", "max(v)", "min(id)", "avg(d)", "count(g)", "sum(v) filter (where v > 2)", "max(k)"),
    *("sum(v * 2)", "sum(coalesce(v, 0))", "bool_or(v > 3)", "count_if(v > 2)", "min(g)", "sum(id)"),
)
CONDITIONS = (
    *("v > 1", "v > 2", "v is not null", "k <> 'a'", "g = 'x'", "id < 35", "d > 1.5", "k like 'a%'"),
    *("v between 1 and 6", "k in ('a', 'b', 'c')", "not (v = 3)", "v > 1 or g = 'y'", "k is null", "v is null"),
    *("upper(k) = 'A'", "k is not null or v > 2", "coalesce(k, 'a') <> 'b'", "v % 2 = 0", "not (k <=> 'a')"),
)
OF_ONE_SIDE = (
    *("o.v > 1", "o.v is not null", "o.v is null", "o.g = 'x'", "o.d > 1.5", "coalesce(o.v, 0) < 4"),
    *("r.v > 1", "r.v is not null", "r.v is null", "r.g = 'x'", "r.d > 1.5", "coalesce(r.v, 0) < 4"),
)
OF_KEYS = (
    *("o.k <> 'a'", "r.k <> 'a'", "o.k in ('a', 'b', 'c')", "o.k is not null", "r.k > 'a'", "o.id < 30", "r.id <> 1"),
    *("o.g = 'x'", "coalesce(o.k, 'a') <> 'b'", "upper(r.k) = 'A'", "o.k is null or o.k <> 'a'", "o.id % 2 = 1"),
)
OF_BOTH_SIDES = (
    *("o.v < r.v", "o.d <= r.d", "coalesce(o.v, 0) < coalesce(r.v, 0)", "o.k <> r.k", "o.id <> r.id"),
    *("o.ts <= r.ts", "o.v < r.v or o.g = 'x'", "not (o.v <=> r.v)"),
)
JOIN_CONDITIONS = (*OF_ONE_SIDE, *OF_KEYS, *OF_BOTH_SIDES)
JOIN_KEYS = ("id", "k", "g")
HAVINGS = ("count(*) > 1", "count(*) > 2", "max(v) > 3", "k > 'a'", "k is not null")
RESULTS = ("{}", "{}", "{}", "{} + 1", "cast({} as string)", "coalesce({}, 0)")
SEMI = "left semi join"


@dataclass(frozen=True)
class Query:
    """A random query: an aggregation, one in windows of a `span`, a join with watermarks, a free join (without any), or
    one without duplicates.
    """

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
    other: str = REFUNDS
    """The right side of a join: refunds, or the orders again."""
    equality: str = "="
    bound: int | None = 30
    """The greatest distance of joined rows in minutes; None: any, in a free join."""
    columns: tuple[str, ...] = ()
    names: str = "o"
    style: int = 0
    mode: str = "update"
    unused: tuple[str, ...] = ()

    @property
    def is_join(self) -> bool:
        """Whether it joins two streams."""
        return self.kind in ("join", "free")

    @property
    def possible_conditions(self) -> tuple[str, ...]:
        """The conditions that fit its columns."""
        if not self.is_join:
            return CONDITIONS
        return tuple(each for each in JOIN_CONDITIONS if self.join != SEMI or "r." not in each)


def random_query(random: Random) -> Query:
    """Returns a random query."""
    kinds = ("aggregation", "aggregation", "windows", "windows", "join", "join", "free", "free", "free", "distinct")
    kind = random.choice(kinds)
    if kind in ("join", "free"):
        return _random_join(random, kind)
    conditions = tuple(random.sample(CONDITIONS, random.choice((0, 0, 1, 1, 2))))
    if kind == "distinct":
        keys = tuple(random.sample(JOIN_KEYS, random.choice((1, 2))))
        return Query(kind, keys, conditions=conditions, columns=("id", "k", "g", "v"), mode="append")
    return _random_aggregation(random, kind, conditions)


def _random_join(random: Random, kind: str) -> Query:
    join = random.choice(("join", "join", "left join", SEMI)) if kind == "join" else "join"
    columns = tuple(random.sample(("o.id", "o.k", "o.v", "r.v", "r.k", "r.id", "o.ts"), random.choice((2, 3, 4))))
    if join == SEMI:
        columns = ("o.id", *(column for column in columns if column.startswith("o.") and column != "o.id"))
    empty = Query(kind, join=join)
    conditions = tuple(random.sample(empty.possible_conditions, random.choice((0, 0, 1, 2))))
    return Query(
        kind,
        keys=tuple(random.sample(JOIN_KEYS, random.choice((1, 1, 1, 2)))),
        conditions=conditions,
        join=join,
        other=random.choice((REFUNDS, REFUNDS, ORDERS)),
        equality=random.choice(("=", "=", "=", "<=>")),
        bound=random.choice((5, 30) if kind == "join" else (None, None, 5, 30)),
        columns=columns,
        mode="append",
    )


def _random_aggregation(random: Random, kind: str, conditions: tuple[str, ...]) -> Query:
    aggregates = tuple(
        (each, random.choice(RESULTS[:3])) for each in random.sample(AGGREGATES, random.choice((1, 2, 3)))
    )
    keys = tuple(random.sample(KEYS, random.choice((1, 1, 2))))
    having = random.choice(HAVINGS) if random.random() < 0.2 else None
    if having and having.startswith("k") and "k" not in keys:
        having = None
    if kind == "windows":
        keys = tuple(key for key in keys[: random.choice((0, 1))] if key != "date(ts)")
        having = having if having and not having.startswith("k") else None
        span = random.choice(("'5 minutes'", "'10 minutes'", "'10 minutes', '5 minutes'"))
        mode = random.choice(("append", "update"))
        return Query(kind, keys, aggregates, conditions, having, span=span, mode=mode)
    union = (random.choice(CONDITIONS),) if random.random() < 0.15 else ()
    mode, style = random.choice(("update", "update", "complete")), random.choice((0, 1, 2))
    return Query(kind, keys, aggregates, conditions, having, union, mode=mode, style=style)


def sql_of(query: Query) -> str:
    """Returns the SQL of a query, without its configuration."""
    if query.is_join:
        return _join_sql(query)
    return _distinct_sql(query) if query.kind == "distinct" else _aggregation_sql(query)


def _where(conditions: tuple[str, ...]) -> str:
    grouped = (f"({each})" if " or " in each else each for each in conditions)
    return f" where {' and '.join(grouped)}" if conditions else ""


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
    hint = f"/*+ WATERMARK(o.ts, '{query.delay}'), WATERMARK(r.ts, '{query.delay}') */ " if query.kind == "join" else ""
    columns = ", ".join(f"{column} as c{index}" for index, column in enumerate(query.columns))
    on = [f"o.{key} {query.equality} r.{key}" for key in query.keys]
    if query.bound is not None:
        span = f"interval {query.bound} minutes"
        on.append(f"r.ts between o.ts - {span} and o.ts + {span}")
    text = (
        f"select {hint}{columns} from {ORDERS} o {query.join} {query.other} r on {' and '.join(on)}"
        f"{_where(query.conditions)}"
    )
    other = query.names + "x"
    return text if query.names == "o" else text.replace("o.", f"{other}.").replace("} o ", f"}} {other} ")


def _distinct_sql(query: Query) -> str:
    return f"select {', '.join((*query.columns, *query.unused))} from {ORDERS}{_where(query.conditions)}"
