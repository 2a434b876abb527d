"""The operators of a stream that keep state."""

from __future__ import annotations

from sqlstream.compiler.flow.nodes import Aggregate, Deduplicate, Join, Node


def kept_state(node: Node) -> str | None:
    """Returns what keeps state at an operator of a stream, None without state."""
    if isinstance(node, Aggregate) and node.streaming:
        return "aggregation"
    if isinstance(node, Deduplicate) and node.streaming:
        return "deduplication"
    if isinstance(node, Join) and all(child.streaming for child in node.children):
        return "join of streams"
    return None
