"""The overview of a target: its graph with what flows now, and each query as it is now."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlstream.app.ui.live_runs import LiveQuery, LiveRuns
from sqlstream.app.ui.shape import Edge, ProjectShape, QueryShape
from sqlstream.times import utc_now

ACTIVE = frozenset({"running", "restarting", "pending"})

logger = logging.getLogger("sqlstream.ui")

QueryNow = dict[str, Any]


@dataclass
class Flows:
    """Rows per second by edge and by node, and the `statuses` of the nodes that are no query: `flowing`, `idle` (a
    running query uses the node), `stopped`, or None if no query has used it yet.
    """

    edges: dict[Edge, float] = field(default_factory=dict)
    nodes: dict[str, float] = field(default_factory=dict)
    statuses: dict[str, str | None] = field(default_factory=dict)

    def as_json(self, shape: ProjectShape) -> dict[str, Any]:
        """Returns the rates: those of edges in the order of `shape.edges`."""
        return {
            "edges": [round(self.edges.get(edge, 0.0), 3) for edge in shape.edges],
            "nodes": {node: round(rate, 3) for node, rate in self.nodes.items() if rate},
        }


def flows_of(shape: ProjectShape, queries: Mapping[str, LiveQuery]) -> Flows:
    """Returns what flows now."""
    flows = Flows()
    uses: dict[str, list[str | None]] = {}
    terminal = frozenset(query.unique_id for query in shape.queries.values())
    for name, query in shape.queries.items():
        live = queries.get(name)
        if live is not None:
            _add_query(flows, query, live, terminal)
        for used in query.nodes:
            uses.setdefault(used, []).append(live.status if live is not None else None)
    for node in shape.nodes:
        flows.statuses[node.unique_id] = _status(flows.nodes.get(node.unique_id, 0.0), uses.get(node.unique_id, []))
        if node.kind == "query" and node.model is not None:
            live = queries.get(node.model)
            flows.statuses[node.unique_id] = live.status if live is not None else None
    return flows


def _add_query(flows: Flows, query: QueryShape, live: LiveQuery, terminal: frozenset[str]) -> None:
    """Adds what flows through one query. A node of `terminal` has only the rate of its own query."""
    rates = live.source_rates()
    total = 0.0
    arrived: dict[str, float] = {}
    for edge, tables in query.edges.items():
        rate = sum(_rate(table, rates)[0] for table in tables)
        flows.edges[edge] = flows.edges.get(edge, 0.0) + rate
        # a table has the rows of all its readers; a view has those of one, and passes them to each node below it
        if edge[0] in tables:
            arrived[edge[0]] = sum(_rate(edge[0], rates))
        else:
            arrived[edge[0]] = max(arrived.get(edge[0], 0.0), rate)
        total += rate if edge[1] == query.unique_id else 0.0
    for node, rate in arrived.items():
        if node not in terminal:
            flows.nodes[node] = flows.nodes.get(node, 0.0) + rate
    flows.nodes[query.unique_id] = total
    for sink in query.sinks:
        rate = live.output_rate()
        flows.edges[query.unique_id, sink] = rate
        flows.nodes[sink] = flows.nodes.get(sink, 0.0) + rate


def _rate(node: str, rates: Mapping[str, tuple[float, int]]) -> tuple[float, float]:
    """Returns the rate of one reader of a source or stored output, and that of its other readers together."""
    name = node.split(".", 2)[-1]
    total, readers = rates.get(name) or rates.get(f"stored.{name}") or (0.0, 1)
    return total / readers, total - total / readers


def _status(rate: float, used_by: list[str | None]) -> str | None:
    if rate > 0:
        return "flowing"
    if any(status in ACTIVE for status in used_by):
        return "idle"
    return "stopped" if any(used_by) else None


@dataclass
class TargetNow:
    """The queries of one target, by model, and what flows between them."""

    shape: ProjectShape
    queries: dict[str, QueryNow] = field(default_factory=dict)
    flows: Flows = field(default_factory=Flows)


class Overviews:
    """Keeps the queries of each target up to date. `shape_of` returns the graph of a target. Not for several threads
    at once.
    """

    def __init__(self, shape_of: Callable[[str | None], ProjectShape]) -> None:
        self.live = LiveRuns()
        self._shape_of = shape_of
        self._targets: dict[str | None, TargetNow] = {}

    def update(self, connection: sqlite3.Connection) -> None:
        """Reads what is new in the history."""
        changed = self.live.update(connection)
        for target, model in changed:
            self.renew(target or None, model)
        for target in {target for target, _ in changed}:
            self._renew_flows(target or None)

    def of(self, target: str | None) -> TargetNow:
        """Returns the target's cached snapshot, rebuilt if its graph changed."""
        shape = self._shape_of(target)
        now = self._targets.get(target)
        if now is None or now.shape is not shape:
            now = self._targets[target] = TargetNow(shape)
            for model in {**shape.queries, **self.live.of_target(target)}:
                self.renew(target, model)
            self._renew_flows(target)
        return now

    def renew(self, target: str | None, model: str) -> None:
        """Makes the entry of a query again, and those of the queries whose corrupt records it writes."""
        now = self._targets.get(target)
        if now is None:
            return
        for name in (model, *now.shape.guarded.get(model, ())):
            try:
                found = self._query_now(now.shape, target, name)
            except Exception:  # a bug in the entry of one query must not hide the others
                logger.exception("the page cannot show %s", name)
                continue
            if found is not None:
                now.queries[name] = found

    def _renew_flows(self, target: str | None) -> None:
        now = self._targets.get(target)
        if now is not None:
            now.flows = flows_of(now.shape, self.live.of_target(target))

    def _query_now(self, shape: ProjectShape, target: str | None, model: str) -> QueryNow | None:
        """Returns a query as it is now, None if it belongs to a model that was removed."""
        query = shape.queries.get(model)
        return None if query is None and shape.queries else self._last_of(query, target, model)

    def removed(self, target: str | None, model: str) -> QueryNow | None:
        """Returns a query that the graph does not have, as its newest run left it. None if it has not run."""
        return self._last_of(None, target, model)

    def _last_of(self, query: QueryShape | None, target: str | None, model: str) -> QueryNow | None:
        live = self.live.queries.get((target or "", model))
        has_tests = query is not None and query.entry.get("quarantine") is not None
        if live is None:
            if query is None:
                return None
            return LiveQuery(0, model, entry=_declared(query)).now(None, None, (), tests=has_tests)
        run = self.live.runs.get(live.run) if live.run is not None else None
        quarantines = query.quarantines if query is not None else ()
        return live.now(run.invocation_id if run else None, self._corrupt(query, target), quarantines, tests=has_tests)

    def _corrupt(self, query: QueryShape | None, target: str | None) -> int | None:
        """Returns the corrupt records of the sources of a query, None if none of them has a quarantine."""
        if query is None or not query.quarantines:
            return None
        found = [self.live.queries.get((target or "", name)) for name in query.quarantines]
        return sum(live.entry.get("rows_out") or 0 for live in found if live is not None)

    def as_json(self, target: str | None) -> dict[str, Any]:
        """Returns everything that the overview shows."""
        now = self.of(target)
        return {
            "time": utc_now(),
            "nodes": [{**node.as_json(), "status": now.flows.statuses.get(node.unique_id)} for node in now.shape.nodes],
            "edges": now.shape.edges,
            "flow": now.flows.as_json(now.shape),
            "queries": dict(now.queries),
        }


def _declared(query: QueryShape | None) -> dict[str, Any]:
    """Returns what is known about a query that has not run yet."""
    if query is None:
        return {}
    config, outputs = query.entry["config"], [query.entry["output"], *query.entry.get("further_outputs", ())]
    return {
        "unique_id": query.unique_id,
        "kind": "stream" if query.entry["streaming"] else "batch",
        "trigger": str(config.get("trigger")) if query.entry["streaming"] else None,
        "sink": ", ".join(output["sink"] for output in outputs),
    }


class Differences:
    """What has changed in an overview since the last call of `since_last`, for one target."""

    def __init__(self) -> None:
        self._last: dict[str, Any] | None = None

    def since_last(self, overview: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the changed parts of `overview`: fields of queries, states of nodes, and rates, with edges by number.
        None if nothing has changed, and the first time. `reload`: the graph has changed.
        """
        now = {
            "queries": overview["queries"],
            "nodes": {node["id"]: node["status"] for node in overview["nodes"]},
            "edge_rates": dict(enumerate(overview["flow"]["edges"])),
            "node_rates": overview["flow"]["nodes"],
            "graph": overview["edges"],
            "runs": overview["runs"],
        }
        last, self._last = self._last, now
        if last is None:
            return None
        # the same object until the project changes
        if last["graph"] is not now["graph"]:
            return {"time": overview["time"], "reload": True}
        found: dict[str, Any] = {
            "queries": _changed_queries(last["queries"], now["queries"]),
            "nodes": _changed(last["nodes"], now["nodes"]),
            "flow": {
                "edges": _changed(last["edge_rates"], now["edge_rates"]),
                "nodes": _changed(last["node_rates"], now["node_rates"]),
            },
        }
        if last["runs"] != now["runs"]:
            found["runs"] = now["runs"]
        is_new = any((found["queries"], found["nodes"], *found["flow"].values(), "runs" in found))
        return {"time": overview["time"], **found} if is_new else None


def _changed_queries(last: Mapping[str, QueryNow], now: Mapping[str, QueryNow]) -> dict[str, Any]:
    return {
        model: {name: value for name, value in query.items() if name not in before or before[name] != value}
        for model, query in now.items()
        if (before := last.get(model, {})) is not query  # an unchanged entry is the same object
    }


def _changed(last: Mapping[Any, Any], now: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the new values of the keys that changed; a key that is gone has None."""
    gone = dict.fromkeys(last.keys() - now.keys())
    return {**{key: value for key, value in now.items() if key not in last or last[key] != value}, **gone}
