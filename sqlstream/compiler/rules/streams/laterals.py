"""Rules on LATERAL: subqueries that Spark can join only by aggregating the stream."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import LateralJoin
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Severity


@rule("lateral-join")
def lateral_joins(query: Query) -> Iterator[QueryProblem]:
    """Spark evaluates some LATERAL subqueries once for each distinct value of the columns that they read, and joins the
    stream with the result: an aggregation and a join of streams.
    """
    for node in query.all(LateralJoin):
        if not node.streaming or not node.domain:
            continue
        timed = any(column.event_time for column in node.domain)
        if query.mode == "append" and not timed:
            yield _problem(node, "which in append mode needs a watermark on one of them", Severity.ERROR)
        elif query.mode == "update" and node.kind == "left":
            yield _problem(node, "and outer joins of streams are not possible in update mode", Severity.ERROR)
        elif query.mode != "append":
            why = (
                f"and in {query.mode} mode the aggregation emits updated values again, so the output contains "
                "duplicate rows"
            )
            yield _problem(node, why, Severity.WARNING)


def _problem(node: LateralJoin, consequence: str, severity: Severity) -> QueryProblem:
    read = ", ".join(dict.fromkeys(f"`{column.name}`" for column in node.domain or ()))
    return QueryProblem(
        node.where,
        "lateral-join",
        "this LATERAL joins the stream with an aggregation of itself",
        f"Spark evaluates it for each distinct value of {read} and joins the stream with the results, {consequence}",
        "use LATERAL VIEW [OUTER] for a generator, the select list for values computed from one row, and a "
        "join with GROUP BY for a table",
        severity,
    )


RULES = (lateral_joins,)
