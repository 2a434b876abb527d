"""How many rows flow now through each node and edge of a project's graph, and the states of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlstream.app.ui.live_query import LiveQuery
from sqlstream.app.ui.shape import Edge, ProjectShape, QueryShape
from sqlstream.state.runs.status import FAILED

ACTIVE = frozenset({"running", "restarting", "pending"})


@dataclass
class Flows:
    """Rows per second by edge and by node, and the `statuses` of the nodes without a query of their own: `flowing`,
    `idle` (a running query uses the node), `failed` (the queries that use it have failed), `stopped`, or None if no
    query has used it yet.
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
    if any(status in FAILED for status in used_by):
        return "failed"
    return "stopped" if any(used_by) else None
