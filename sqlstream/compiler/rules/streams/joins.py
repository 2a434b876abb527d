"""Rules on joins: which sides can be streams, and what an outer join of two streams needs."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import Join
from sqlstream.compiler.flow.types.values import TIMESTAMP
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.streams.missing_watermarks import has_watermark, sides_fix
from sqlstream.compiler.sql.names import quote_identifier

KEPT = {"left": (0,), "right": (1,), "full": (0, 1), "left semi": (0,)}
"""The sides (0, 1) of one of which an outer join of two streams must know when a row can match no more."""

SIDES = ("left", "right")

UPDATING_JOINS = (4, 2)
"""The first version of Spark that runs inner and semi joins of two streams in update mode."""

STATIC_SIDES = {"left": (True,), "left semi": (True,), "left anti": (True,), "right": (False,), "full": (True, False)}
"""The joins whose left side (True) or right side (False) must not be static where the other one streams."""


@rule("static-outer-join")
def static_sides(query: Query) -> Iterator[QueryProblem]:
    """An outer join with a stream cannot keep the rows of a static table."""
    for node in query.all(Join):
        left, right = (child.streaming for child in node.children)
        if left == right or (not left) not in STATIC_SIDES.get(node.kind, ()):
            continue
        side = "left" if not left else "right"
        yield QueryProblem(
            node.where,
            "static-outer-join",
            f"{a_join(node)} keeps the rows of a static table on its {side} side, but its other side is a stream",
            "Spark can tell that a static row has no match only when the stream ends, which never happens",
            "use an inner join, or keep the rows of the stream",
        )


@rule("stream-anti-join")
def anti_joins(query: Query) -> Iterator[QueryProblem]:
    """Spark has no anti join of two streams."""
    for node in query.all(Join):
        if node.kind == "left anti" and all(child.streaming for child in node.children):
            yield QueryProblem(
                node.where,
                "stream-anti-join",
                "a left anti join with a stream on its right side is not possible",
                "Spark can tell that a row has no match only when the right stream ends, which never happens",
                "use a left join with watermarks and a time bound, and keep the rows whose right side is null",
            )


@rule("stream-join-mode")
def join_modes(query: Query) -> Iterator[QueryProblem]:
    """Joins of two streams need append mode; from Spark 4.2 on, inner and semi joins can also use update mode."""
    for node in query.all(Join):
        if not all(child.streaming for child in node.children):
            continue
        plain = node.kind in ("inner", "cross", "left semi")
        in_update = plain and query.spark >= UPDATING_JOINS
        if query.mode == "complete" or (query.mode == "update" and not in_update):
            since = f"; Spark {UPDATING_JOINS[0]}.{UPDATING_JOINS[1]} also supports update mode" if plain else ""
            yield QueryProblem(
                node.where,
                "stream-join-mode",
                f"{a_join(node)} of two streams is not possible in {query.mode} mode",
                f"an emitted join result never changes, so Spark supports only append mode here{since}",
                "use output_mode='append'",
            )


@rule("outer-join-without-bound")
def outer_joins(query: Query) -> Iterator[QueryProblem]:
    """An outer join of two streams needs watermarks and a time bound to know when a row can no longer match."""
    for node in query.all(Join):
        if node.kind not in KEPT or not all(child.streaming for child in node.children):
            continue
        if node.time_in_keys is not False or node.bounded is None:
            continue
        if node.bounded.isdisjoint(SIDES[side] for side in KEPT[node.kind]):
            yield _without_bound(node)


def _without_bound(node: Join) -> QueryProblem:
    kept = KEPT[node.kind]
    rows = " or ".join(f"`{node.names[side]}`" for side in kept)
    others = " or ".join(f"`{node.names[1 - side]}`" for side in kept)
    what = "waits for a match" if node.kind == "left semi" else "without a match waits"
    without = [1 - side for side in kept if not has_watermark(node.children[1 - side])]
    watermark, upstream, places = sides_fix(node, without) if without else ("", "", ())
    bounds = [f"{event_time(node, 1 - side)} <= {event_time(node, side)} + interval 1 hour" for side in kept]
    return QueryProblem(
        node.where,
        "outer-join-without-bound",
        f"{a_join(node)} of two streams has no time bound",
        f"a row of {rows} {what} until the watermark of {others} has passed it, so Spark needs that watermark "
        "and a condition on both event times",
        f"{watermark}{', and ' if watermark else ''}add a condition such as {' and '.join(bounds)}{upstream}",
        origins=places,
    )


def a_join(node: Join) -> str:
    """Returns what kind of join it is, with its article: `an inner join`."""
    article = "an" if node.kind[0] in "aio" else "a"
    return f"{article} {node.kind} join"


def event_time(node: Join, side: int) -> str:
    """Returns the time of one side (0, 1) by which a join can be bounded: that with a watermark, else a timestamp."""
    columns = node.children[side].columns or ()
    found = [column.in_sql for column in columns if column.event_time]
    found += [column.in_sql for column in columns if column.type == TIMESTAMP]
    return f"{quote_identifier(node.names[side])}.{found[0] if found else 'event_time'}"


@rule("join-without-key")
def equalities(query: Query) -> Iterator[QueryProblem]:
    """A join of two streams needs an equality, because Spark finds matches in its state by key."""
    unclear = query.below(lambda hints: hints.may_equate)
    for node in query.all(Join):
        if node.kind == "cross" and all(child.streaming for child in node.children):
            yield QueryProblem(
                node.where,
                "join-without-key",
                "a CROSS JOIN of two streams is not possible",
                "Spark joins streams by key, and a cross join fails in the first batch, even with a condition in WHERE",
                "use JOIN with a condition such as on a.id = b.id",
            )
        elif node.has_equality is False and id(node) not in unclear and all(child.streaming for child in node.children):
            yield QueryProblem(
                node.where,
                "join-without-key",
                "a join of two streams has no equality between columns of both sides",
                "Spark looks up matches in the join state by key; without a key, the first batch fails",
                "add a condition such as a.id = b.id",
            )


@rule("join-condition")
def clocks(query: Query) -> Iterator[QueryProblem]:
    """Spark refuses the current time in a join condition, but only in the first batch."""
    for node in query.all(Join):
        if node.clock:
            yield QueryProblem(
                node.where,
                "join-condition",
                f"`{node.clock}` is not allowed in the join condition of a streaming query",
                "its value changes with each batch, and Spark accepts only deterministic join conditions",
                "move that part of the condition to WHERE",
            )


RULES = (static_sides, anti_joins, join_modes, equalities, outer_joins, clocks)
