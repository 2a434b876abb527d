"""Finds rules for alerts that never apply: about watermarks or state of queries without, or of no query at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.flow.nodes import EventTimeWatermark, Opaque, kept_state
from sqlstream.compiler.rules.alerts import CODE, own_rules, unused_message, why_unused
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.alerts import AlertKind, AlertRule


def unfit_alerts(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> list[Finding]:
    """Returns a warning for each rule about watermarks or state that a model sets itself although its query has none,
    and for each rule of the project that fits none of its queries, if that is certain.
    """
    return [*_of_models(compiled, analyses), *_of_project(compiled, analyses)]


def _of_models(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> Iterator[Finding]:
    for unique_id, model in compiled.models.items():
        for kind, own, location in own_rules(model):
            if unique_id in analyses and why_unused(compiled, model, kind, own) is None:
                for reason in _why_stateless(kind, analyses[unique_id]):
                    yield Finding(CODE, unused_message(model, kind), *reason, location, Severity.WARNING)


def _of_project(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> Iterator[Finding]:
    alerts = compiled.project.target.alerts
    for kind, alert in alerts.rules.items():
        queries = [model for model in compiled.models.values() if _follows_project(model, kind)]
        queries.sort(key=lambda model: not model.streaming)  # the reasons of streams say more
        found = (_why_unfit(compiled, model, kind, alert, analyses) for model in queries)
        reasons = [reason for reason in takewhile(bool, found) if reason]
        if alert.is_on and reasons and len(reasons) == len(queries):
            yield _unfit_rule(kind, queries, reasons[0], alerts.places[kind])


def _follows_project(model: CompiledModel, kind: AlertKind) -> bool:
    """Returns whether the query of a model, if it has one, has the project's rule of this kind."""
    own = {} if model.config.alerts is None else model.config.alerts.by_kind
    return model.output is not None and kind not in own


def _unfit_rule(
    kind: AlertKind, queries: Sequence[CompiledModel], reason: tuple[str, str], location: Location
) -> Finding:
    example = "" if len(queries) == 1 else "for example, "
    why, fix = f"{example}`{queries[0].name}`: {reason[0]}", reason[1]
    return Finding(CODE, f"`{kind}` applies to no query of this project", why, fix, location, Severity.WARNING)


def _why_unfit(
    compiled: CompiledProject, model: CompiledModel, kind: AlertKind, alert: AlertRule, analyses: Mapping[str, Analysis]
) -> tuple[str, str] | None:
    reason = why_unused(compiled, model, kind, alert)
    if reason is not None or model.unique_id not in analyses:
        return reason
    return next(_why_stateless(kind, analyses[model.unique_id]), None)


_ON_WATERMARKS = (AlertKind.WATERMARK_BEHIND, AlertKind.WATERMARK_AHEAD)


def _why_stateless(kind: AlertKind, analysis: Analysis) -> Iterator[tuple[str, str]]:
    if kind not in (*_ON_WATERMARKS, AlertKind.LATE_ROWS_OVER, AlertKind.STATE_ROWS_OVER):
        return
    nodes = list(analysis.node.walk())
    if any(isinstance(node, Opaque) for node in nodes):
        return
    has_watermark = any(isinstance(node, EventTimeWatermark) for node in nodes)
    if kind is not AlertKind.STATE_ROWS_OVER and not has_watermark:
        yield "its query has no watermark", "add a WATERMARK hint or a `watermark:` of its source, or remove the rule"
    elif kind not in _ON_WATERMARKS and not any(map(kept_state, nodes)):
        reason = "its query has no aggregation, deduplication or join of streams, so it keeps no state"
        more = " and drops no late rows" if kind is AlertKind.LATE_ROWS_OVER else ""
        yield reason + more, "remove the rule"
