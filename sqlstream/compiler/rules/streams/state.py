"""Rules on long-running queries: state that grows until memory or the disk is full, output that ends."""

from __future__ import annotations

from sqlstream.compiler.flow.nodes import Aggregate, Deduplicate, Join, Limit, kept_state
from sqlstream.compiler.rules.query import Problems, Query, is_stateful, is_stream_join, operator_rule, query_rule
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.rules.streams.joins import SIDES, a_join, time_bound
from sqlstream.compiler.rules.streams.missing_watermarks import DELAY, has_watermark, hint, sides_fix, time_key, time_of
from sqlstream.compiler.sql.edits import Where
from sqlstream.errors import Severity
from sqlstream.project.types.data_types import Primitive
from sqlstream.project.wording import quoted_list

ENDLESS = "unbounded-state"
ALLOW = f"-- sqlstream: allow {ENDLESS} because ..."


@query_rule("unavailable-value")
def delayed_changes(query: Query) -> Problems:
    """An operator with state emits rows later than their successors, so a sink would keep a value of the wrong row."""
    for node in filter(is_stateful, query.executed() if query.terminal.config.unavailable_columns else ()):
        yield QueryProblem(
            node.where,
            f"`{query.model}` sets unavailable_columns, but this operator can emit a change after a later one",
            "the value to keep is that of the change before, which has then not arrived yet",
            "keep the values in a table without this operator, and let another query read the table",
        )


@operator_rule(ENDLESS, Aggregate, mode="update", severity=Severity.WARNING)
def endless_groups(_: Query, node: Aggregate) -> Problems:
    """In update mode the watermark removes groups from the state; without one the state keeps every group forever."""
    if not node.keys or node.children[0].columns is None:
        return
    if any(key.column.may_carry or (key.is_column and key.column.event_time) for key in node.keys):
        return
    if all(key.column.type == Primitive("boolean") or not key.column.origins for key in node.keys):
        return  # a few groups, or a constant
    keys = quoted_list([key.text for key in node.keys])
    what = "SELECT DISTINCT" if node.kind == "distinct" else "an aggregation"
    yield QueryProblem(
        node.where,
        f"the state of {what} never shrinks",
        f"it keeps a row for each value of {keys} ever seen, because none of these columns has a watermark",
        f"{_add_watermark(node)}; or, if there are few values, allow this: {ALLOW}",
    )


def _add_watermark(node: Aggregate) -> str:
    """Returns how the groups of `node` get an end."""
    rows = node.children[0]
    grouped = time_key(node)
    if grouped is not None:
        return f"add {hint(grouped)} after SELECT"
    carried = next((column.in_sql for column in rows.columns or () if column.event_time), None)
    if carried is not None:
        return f"also group by window({carried}, {DELAY})"
    time = time_of(rows)
    return f"add {hint(time)} after SELECT and group by window({time}, {DELAY}) too"


@query_rule(ENDLESS, severity=Severity.WARNING)
def endless_joins(query: Query) -> Problems:
    """A join of streams keeps each row until the other side's watermark shows that it can no longer match."""
    unclear = query.below(lambda hints: hints.may_bound)
    for node in filter(is_stream_join, query.all(Join)):
        if node.bounded is None or node.time_keys != ():
            continue
        endless = [side for side, name in enumerate(SIDES) if name not in node.bounded]
        # A condition above an outer join stays there, and adds no bound to it.
        if endless and not (id(node) in unclear and node.kind in ("inner", "cross")):
            yield _endless(node, endless)


def _endless(node: Join, sides: list[int]) -> QueryProblem:
    names = quoted_list([node.names[side] for side in sides])
    without = [side for side in (0, 1) if 1 - side in sides and not has_watermark(node.children[side])]
    fix = f"add to the join condition: {time_bound(node, sides)}"
    places: tuple[Where, ...] = ()
    if without:
        watermark, upstream, places = sides_fix(node, without)
        fix = f"{watermark}, and {fix}{upstream}"
    return QueryProblem(
        node.where,
        f"the state of {a_join(node)} of two streams never shrinks",
        f"it keeps every row of {names} forever, because no condition says how old a matching row can be",
        f"{fix}; or, if there are few rows, allow this: {ALLOW}",
        origins=places,
    )


@query_rule("repeated-state", severity=Severity.INFO)
def repeated_state(query: Query) -> Problems:
    """Each query that computes a model has its own copy of the model's state."""
    seen = set[str]()
    for node in query.nodes:
        model, kept = node.where.model, kept_state(node)
        if kept is None or not query.name_of(model) or model in seen:
            continue
        seen.add(model)
        yield QueryProblem(
            node.where,
            query.model,  # one finding for all queries names them
            f"each query that reads `{query.name_of(model)}` computes it, and keeps the state of its {kept}",
            "to keep it once, give the model a sink and materialized='stored', so that the queries read its rows from "
            "there; for several sinks of one model, use fan_out='shared'",
        )


@operator_rule(ENDLESS, Deduplicate, severity=Severity.WARNING)
def endless_duplicates(_: Query, node: Deduplicate) -> Problems:
    """Without a watermark, a deduplication keeps the key of every row forever."""
    if node.within is False:
        add = f"add {hint(time_of(node.children[0]))} after SELECT, and keep that column"
        yield QueryProblem(
            node.where,
            "the state of a deduplication never shrinks",
            f"it keeps each value of {quoted_list(node.keys)} ever seen, because no column of its input has a "
            "watermark",
            f"{add}; or, if there are few values, allow this: {ALLOW}",
        )


@operator_rule("stream-limit", Limit, mode="append", severity=Severity.WARNING)
def lasting_limits(query: Query, node: Limit) -> Problems:
    """In append mode LIMIT counts the rows of all batches and restarts; then the query emits nothing more."""
    if not node.is_offset:
        yield QueryProblem(
            node.where,
            f"`{query.model}` writes no more rows after it reaches its LIMIT",
            "LIMIT counts the rows of all batches over the whole life of the checkpoint",
            "remove it; to look at a few rows, use `sqlstream show`",
        )
