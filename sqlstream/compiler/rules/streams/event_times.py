"""Rules on event times: an operator with state gets one at most (`WatermarkSupport.findEventTimeColumn` of Spark).

Spark removes columns that nothing uses before it looks, so this counts only those that the operator certainly needs:
its keys, and what the query emits. `compile --check` and `run` ask Spark about all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.nodes import Aggregate, Deduplicate, Join, Key, Node, SetOperation
from sqlstream.compiler.rules.query import Problems, Query, is_stream_join, query_rule
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.rules.streams.joins import SIDES, a_join
from sqlstream.compiler.sql.edits import Where
from sqlstream.project.types.data_types import Struct
from sqlstream.project.wording import quoted_list

ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
"""If this setting is `false`, Spark allows only one operator with state, which can have several event times."""


@query_rule("several-event-times")
def several_event_times(query: Query) -> Problems:
    """Spark drops old state by one event time: an aggregation, a deduplication or a join of streams with more fails in
    the first batch.
    """
    if str(query.compiled.project.target.spark.get(ALLOW_MULTIPLE)).lower() == "false":
        return
    emitted = frozenset(map(id, query.node.columns or ()))
    for node in query.nodes:
        for what, where, columns in _operators(node, query, emitted) if node.streaming else ():
            if len(columns) > 1:
                yield _problem(what, where, columns)


def _problem(what: str, where: Where, columns: Sequence[Column]) -> QueryProblem:
    plain = next((column.in_sql for column in reversed(columns) if not isinstance(column.type, Struct)), "event_time")
    return QueryProblem(
        where,
        f"{what} several event times: {quoted_list([column.name for column in columns])}",
        "each has a watermark, Spark drops old state by one of them, and the first batch fails if there are more",
        f"leave out all but one, or make the others plain times in a subquery: {plain} + interval 0 seconds as {plain}",
    )


Found = tuple[str, Where, Sequence[Column]]
"""What the beginning of a message says of an operator, its place, and the event times that it certainly gets."""


def _operators(node: Node, query: Query, emitted: frozenset[int]) -> Iterator[Found]:
    if isinstance(node, Aggregate) and (node.session or query.mode != "complete"):
        keys = _distinct_keys(node)
        distinct = "UNION gets" if isinstance(node.children[0], SetOperation) else "SELECT DISTINCT gets"
        subject = {"distinct": distinct, "pivot": "PIVOT groups by"}.get(node.kind, "GROUP BY has")
        yield subject, keys[-1].where if keys and node.kind == "group" else node.where, [key.column for key in keys]
    elif isinstance(node, SetOperation) and node.kind == "except":
        yield "EXCEPT gets", node.where, _times(node.children[0].columns or ())
    elif isinstance(node, Deduplicate):
        names = {name.lower() for name in node.keys}
        columns = [each for each in node.columns or () if node is query.node or each.name.lower() in names]
        yield "`deduplicate` gets", node.where, _times(columns)
    elif isinstance(node, Join) and is_stream_join(node):
        for side, columns in zip(SIDES, _sides(node, emitted), strict=True):
            yield f"the {side} side of {a_join(node)} has", node.where, columns


def _times(columns: Iterable[Column]) -> list[Column]:
    """Returns the columns with a watermark, each attribute of Spark once: `select a, a` has one attribute twice."""
    found: list[Column] = []
    for column in columns:
        if column.event_time is not None and not any(column.may_be(other) for other in found):
            found.append(column)
    return found


def _distinct_keys(node: Aggregate) -> list[Key]:
    """Returns the keys with a watermark that are certainly different. A key that is not a column of the rows is a time
    window or a name of the select list, whose expression may be that of another key of the same type.
    """
    below = frozenset(map(id, node.children[0].columns or ()))
    timed = [key for key in node.keys if key.column.event_time is not None]
    columns = [key for key in timed if id(key.column) in below]
    kept = {id(column) for column in _times(key.column for key in columns)}
    plain = list({id(key.column): key for key in columns if id(key.column) in kept}.values())
    known = {None, *(key.column.type for key in plain)}
    others = {key.column.type: key for key in timed if id(key.column) not in below and key.column.type not in known}
    return sorted([*plain, *others.values()], key=node.keys.index)


def _sides(node: Join, emitted: frozenset[int]) -> tuple[list[Column], list[Column]]:
    """Returns the event times of each side that the query emits, or that are keys of the join."""
    needed = emitted.union(map(id, node.time_keys or ()))
    left = node.children[0].columns or ()
    known = frozenset(map(id, left))
    # the flow gives the right side new columns if it has those of the left one, as in a join of a CTE with itself
    right = [column for column in node.columns or () if id(column) not in known]
    return _times(each for each in left if id(each) in needed), _times(each for each in right if id(each) in needed)
