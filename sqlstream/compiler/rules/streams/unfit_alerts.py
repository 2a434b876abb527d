"""Finds rules for alerts that never apply: about watermarks or state of queries without, or of no query at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.flow.kept_state import kept_state
from sqlstream.compiler.flow.nodes import EventTimeWatermark, Opaque
from sqlstream.compiler.rules.alerts import CODE, own_rules, unused_message, why_unused
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.alerts import AlertKind, AlertRule


def stateless_alerts(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> list[Finding]:
    """Returns a warning for each rule about watermarks or state that a model sets itself although its query has none,
    if that is certain.
    """
    return [
        Finding(CODE, unused_message(model, kind), *reason, location, Severity.WARNING)
        for unique_id, model in compiled.models.items()
        for kind, own, location in own_rules(model)
        if unique_id in analyses and why_unused(compiled, model, kind, own) is None
        for reason in _why_stateless(kind, analyses[unique_id])
    ]


def project_alerts(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> list[Finding]:
    """Returns a warning for each rule of the project that can apply to none of its queries, if that is certain."""
    alerts = compiled.project.target.alerts
    found = (
        _unfit_rule(compiled, analyses, kind, alert, alerts.places[kind])
        for kind, alert in alerts.rules.items()
        if alert.is_on
    )
    return [finding for finding in found if finding is not None]


def _unfit_rule(
    compiled: CompiledProject, analyses: Mapping[str, Analysis], kind: AlertKind, alert: AlertRule, location: Location
) -> Finding | None:
    queries = [model for model in compiled.models.values() if model.output is not None and not _has_own(model, kind)]
    reasons = [_why_unfit(compiled, model, kind, alert, analyses) for model in queries]
    if not reasons or None in reasons:
        return None
    why, fix = next(filter(None, reasons))
    example = "" if len(queries) == 1 else "for example, "
    what = f"`{kind}` can never apply to a query of this project"
    return Finding(CODE, what, f"{example}`{queries[0].name}`: {why}", fix, location, Severity.WARNING)


def _has_own(model: CompiledModel, kind: AlertKind) -> bool:
    return model.config.alerts is not None and kind in model.config.alerts.by_kind


def _why_unfit(
    compiled: CompiledProject, model: CompiledModel, kind: AlertKind, alert: AlertRule, analyses: Mapping[str, Analysis]
) -> tuple[str, str] | None:
    reason = why_unused(compiled, model, kind, alert)
    if reason is not None or model.unique_id not in analyses:
        return reason
    return next(_why_stateless(kind, analyses[model.unique_id]), None)


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
