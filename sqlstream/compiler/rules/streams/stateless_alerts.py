"""Finds rules for alerts about watermarks and state of queries that have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.flow.kept_state import kept_state
from sqlstream.compiler.flow.nodes import EventTimeWatermark, Opaque
from sqlstream.compiler.rules.alerts import CODE, own_kinds, unused_message, why_unused
from sqlstream.errors import Finding, Severity
from sqlstream.project.alerts import AlertKind


def stateless_alerts(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> list[Finding]:
    """Returns a warning for each rule about watermarks or state that a model sets itself although its query has none,
    if that is certain.
    """
    return [
        Finding(CODE, unused_message(model, kind), *reason, location, Severity.WARNING)
        for unique_id, model in compiled.models.items()
        for kind, location in own_kinds(model)
        if unique_id in analyses and why_unused(compiled, model, kind) is None
        for reason in _why_stateless(kind, analyses[unique_id])
    ]


def _why_stateless(kind: AlertKind, analysis: Analysis) -> Iterator[tuple[str, str]]:
    if kind not in (AlertKind.WATERMARK_BEHIND, AlertKind.LATE_ROWS_OVER, AlertKind.STATE_ROWS_OVER):
        return
    nodes = list(analysis.node.walk())
    if any(isinstance(node, Opaque) for node in nodes):
        return
    has_watermark = any(isinstance(node, EventTimeWatermark) for node in nodes)
    if kind is not AlertKind.STATE_ROWS_OVER and not has_watermark:
        yield "its query has no watermark", "add a WATERMARK hint or a `watermark:` of its source, or remove the rule"
    elif kind is not AlertKind.WATERMARK_BEHIND and not any(map(kept_state, nodes)):
        reason = "its query has no aggregation, deduplication or join of streams, so it keeps no state"
        more = " and drops no late rows" if kind is AlertKind.LATE_ROWS_OVER else ""
        yield reason + more, "remove the rule"
