"""Rules on joins: which sides can be streams, and what an outer join of two streams needs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.flow.nodes import Join, LateralJoin
from sqlstream.compiler.flow.type_rules import TIMESTAMP
from sqlstream.compiler.rules.query import Problems, Query, is_stream_join, operator_rule, query_rule
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.rules.streams.missing_watermarks import has_watermark, sides_fix
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.errors import Severity
from sqlstream.project.types.data_types import Struct

KEPT = {"left": (0,), "right": (1,), "full": (0, 1), "left semi": (0,)}
"""The sides (0, 1) of outer and semi joins of two streams whose rows wait until they can no longer match. Spark needs a
time bound for at least one of them.
"""

SIDES = ("left", "right")

UPDATING_JOINS = (4, 2)
"""The first version of Spark that runs inner and semi joins of two streams in update mode."""

STATIC_SIDES = {"left": (True,), "left semi": (True,), "left anti": (True,), "right": (False,), "full": (True, False)}
"""The joins whose left side (True) or right side (False) must not be static if the other side streams."""


@operator_rule("static-outer-join", Join)
def static_sides(_: Query, node: Join) -> Problems:
    """An outer join with a stream cannot keep the rows of a static table."""
    left, right = (child.streaming for child in node.children)
    if left != right and (not left) in STATIC_SIDES.get(node.kind, ()):
        side = SIDES[left]
        yield QueryProblem(
            node.where,
            f"{a_join(node)} keeps the rows of a static table on its {side} side, but its other side is a stream",
            "Spark can tell that a static row has no match only when the stream ends, which never happens",
            "use an inner join, or keep the rows of the stream",
        )


@operator_rule("stream-anti-join", Join)
def anti_joins(_: Query, node: Join) -> Problems:
    """Spark has no anti join of two streams."""
    if node.kind == "left anti" and is_stream_join(node):
        yield QueryProblem(
            node.where,
            "a left anti join with a stream on its right side is not possible",
            "Spark can tell that a row has no match only when the right stream ends, which never happens",
            "use a left join with watermarks and a time bound, and keep the rows whose right side is null",
        )


@operator_rule("stream-join-mode", Join)
def join_modes(query: Query, node: Join) -> Problems:
    """Joins of two streams need append mode; from Spark 4.2 on, inner and semi joins can also use update mode."""
    can_update = node.kind in ("inner", "cross", "left semi")
    runs_in_update = query.mode == "update" and can_update and query.spark >= UPDATING_JOINS
    if is_stream_join(node) and query.mode != "append" and not runs_in_update:
        since = f"; Spark {UPDATING_JOINS[0]}.{UPDATING_JOINS[1]} also supports update mode" if can_update else ""
        yield QueryProblem(
            node.where,
            f"{a_join(node)} of two streams is not possible in {query.mode} mode",
            f"an emitted join result never changes, so Spark supports only append mode here{since}",
            "use output_mode='append'",
        )


@query_rule("join-without-key")
def equalities(query: Query) -> Problems:
    """A join of two streams needs an equality, because Spark finds matches in its state by key."""
    unclear = query.below(lambda hints: hints.may_equate)
    for node in filter(is_stream_join, query.all(Join)):
        if node.kind == "cross":
            yield QueryProblem(
                node.where,
                "a CROSS JOIN of two streams is not possible",
                "Spark joins streams by key, and a cross join fails in the first batch, even with a condition in WHERE",
                "use JOIN with a condition such as on a.id = b.id",
            )
        elif node.has_equality is False and id(node) not in unclear:
            yield QueryProblem(
                node.where,
                "a join of two streams has no equality between columns of both sides",
                "Spark looks up matches in the join state by key; without a key, the first batch fails",
                "add a condition such as a.id = b.id",
            )


@operator_rule("outer-join-without-bound", Join)
def outer_joins(_: Query, node: Join) -> Problems:
    """An outer join of two streams needs watermarks and a time bound to know when a row can no longer match."""
    kept = KEPT.get(node.kind)
    if kept is None or not is_stream_join(node) or node.time_keys != () or node.bounded is None:
        return
    if not node.bounded.isdisjoint(SIDES[side] for side in kept):
        return
    rows = " or ".join(f"`{node.names[side]}`" for side in kept)
    others = " or ".join(f"`{node.names[1 - side]}`" for side in kept)
    what = "waits for a match" if node.kind == "left semi" else "without a match waits"
    without = [1 - side for side in kept if not has_watermark(node.children[1 - side])]
    watermark, upstream, places = sides_fix(node, without) if without else ("", "", ())
    bound = time_bound(node, kept)
    yield QueryProblem(
        node.where,
        f"{a_join(node)} of two streams has no time bound",
        f"a row of {rows} {what} until the watermark of {others} has passed it, so Spark needs that watermark "
        "and a condition on both event times",
        f"{watermark}{', and ' if watermark else ''}add a condition such as {bound}{upstream}",
        origins=places,
    )


def a_join(node: Join) -> str:
    """Returns the kind of a join with its article: `an inner join`."""
    article = "an" if node.kind[0] in "aio" else "a"
    return f"{article} {node.kind} join"


def time_bound(node: Join, sides: Sequence[int]) -> str:
    """Returns a condition on the age of the rows of `sides` (0, 1). Spark can compare time windows only by equality."""
    times = [_event_time(node, side) for side in (0, 1)]
    names = [f"{quote_identifier(name)}.{time}" for name, (time, _) in zip(node.names, times, strict=True)]
    if any(is_window for _, is_window in times):
        other = next((side for side, (_, is_window) in enumerate(times) if not is_window), None)
        if other is None:
            return " = ".join(names)
        window, relation = times[1 - other][0], quote_identifier(node.names[other])
        made = f"a subquery over `{node.names[other]}` has window({times[other][0]}, ...) as {window}"
        return f"{names[1 - other]} = {relation}.{window}, where {made}"
    return " and ".join(f"{names[1 - side]} <= {names[side]} + interval 1 hour" for side in sides)


def _event_time(node: Join, side: int) -> tuple[str, bool]:
    """Returns the column of one side (0, 1) for a time bound, and whether it is a time window: one with a watermark, if
    possible no window; otherwise a timestamp.
    """
    columns = node.children[side].columns or ()
    timed = [column for column in columns if column.event_time]
    found = sorted(timed, key=lambda column: isinstance(column.type, Struct))
    found += [column for column in columns if column.type == TIMESTAMP]
    return (found[0].in_sql, isinstance(found[0].type, Struct)) if found else ("event_time", False)


@operator_rule("join-condition", Join, static=True)
def clocks(_: Query, node: Join) -> Problems:
    """Spark refuses the current time in a join condition, but only in the first batch."""
    if node.clock:
        yield QueryProblem(
            node.where,
            f"`{node.clock}` is not allowed in the join condition of a streaming query",
            "its value changes with each batch, and Spark accepts only deterministic join conditions",
            "move that part of the condition to WHERE",
        )


@operator_rule("lateral-join", LateralJoin)
def lateral_joins(query: Query, node: LateralJoin) -> Problems:
    """Spark evaluates some LATERAL subqueries once for each distinct value of the columns that they read, and joins the
    stream with the result: an aggregation and a join of streams.
    """
    if not node.domain or (query.mode == "append" and any(column.event_time for column in node.domain)):
        return
    severity = Severity.ERROR
    if query.mode == "append":
        consequence = "which in append mode needs a watermark on one of them"
    elif query.mode == "update" and node.kind == "left":
        consequence = "and outer joins of streams are not possible in update mode"
    else:
        severity, again = Severity.WARNING, "emits updated values again, so the output contains duplicate rows"
        consequence = f"and in {query.mode} mode the aggregation {again}"
    read = ", ".join(dict.fromkeys(f"`{column.name}`" for column in node.domain))
    yield QueryProblem(
        node.where,
        "this LATERAL joins the stream with an aggregation of itself",
        f"Spark evaluates it for each distinct value of {read} and joins the stream with the results, {consequence}",
        "use LATERAL VIEW [OUTER] for a generator, the select list for values computed from one row, and a "
        "join with GROUP BY for a table",
        severity,
    )
