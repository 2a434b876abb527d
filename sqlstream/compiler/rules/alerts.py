"""Rules about alerts: those that can never apply to a query, such as one on the watermark of a query without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analysis import Analysis
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.alerts import AlertKind, AlertRule
from sqlstream.project.files.files import PROJECT_FILE
from sqlstream.project.formats.formats import format_of

CODE = "unused-alert"

_UNITS = {"kafka": ("records",), "delta": ("versions",), "iceberg": (), "rate": (), "socket": ()}
"""The units of the lag of a source, by its format."""

_UNITS_OF_FILES = ("files", "bytes")


@rule(CODE, severity=Severity.WARNING)
def unused_alerts(compiled: CompiledProject) -> Problems:
    """A rule for alerts can apply to the query of its model, or to a query of the project."""
    for model in compiled.models.values():
        for kind, own, location in _own_rules(model):
            reason = _why_unused(compiled, model, kind, own)
            if reason is not None:
                yield Problem(_unused_message(model, kind), *reason, location)


def _own_rules(model: CompiledModel) -> Iterator[tuple[AlertKind, AlertRule, Location]]:
    """Yields the rules that the properties or config() of a model turn on, with the location of `alerts`."""
    if model.config.alerts is None or model.file.rows_of is not None:
        return
    locations: dict[str, Location] = {}
    for patch in (*model.file.configs, model.rendered.config):
        located = patch.get("alerts")
        if located is not None and isinstance(located.value, dict) and located.location.path != PROJECT_FILE:
            locations |= dict.fromkeys(located.value, located.location)
    for kind, rule_ in model.config.alerts.by_kind.items():
        if rule_.is_on and str(kind) in locations:
            yield kind, rule_, locations[str(kind)]


def _unused_message(model: CompiledModel, kind: AlertKind) -> str:
    """Returns the first line of the finding about a rule."""
    return f"`{kind}` can never apply to `{model.name}`"


def _why_unused(
    compiled: CompiledProject, model: CompiledModel, kind: AlertKind, alert: AlertRule
) -> tuple[str, str] | None:
    """Returns the reason and the fix, None if the rule can apply as far as the declarations show."""
    if model.output is None:
        return "it has no sink, so it has no query that could raise alerts", "set it on the models that read it"
    if not model.streaming:
        reason = "it is a batch model, which is written once per run; only `failed` applies to it"
        return None if kind is AlertKind.FAILED else (reason, "remove the rule")
    if kind is AlertKind.BATCH_SLOWER and model.config.trigger.period_seconds is None:
        return (
            f"its trigger is {model.config.trigger}, so no batch has a time by which it should end",
            "set a trigger with an interval, for example `trigger: 1 minute`, or remove the rule",
        )
    tables = compiled.tables_of(model.unique_id)
    is_quarantined = model.quarantine_tests or any(table.on_corrupt == "quarantine" for table in tables)
    if kind is AlertKind.QUARANTINED_OVER and not is_quarantined:
        reason = (
            "none of its data tests has `on_violation: quarantine`, and none of its sources `on_corrupt: quarantine`"
        )
        return reason, "set one of them, or remove the rule"
    if kind is AlertKind.EXPECTATION_FAILED and not _has_data_tests(compiled, model):
        return "its query has no data tests", "add `data_tests:` to a model of the query, or remove the rule"
    if kind is AlertKind.LAG_OVER:
        return _why_no_lag(alert.unit, {table.format for table in tables if table.mode == "stream"})
    return None


def _has_data_tests(compiled: CompiledProject, model: CompiledModel) -> bool:
    nodes = {*compiled.upstream(model.unique_id), model.unique_id} & compiled.models.keys()
    return any(compiled.models[node].file.row_tests for node in nodes)


def _why_no_lag(unit: str, formats: set[str]) -> tuple[str, str] | None:
    known = {name: _UNITS_OF_FILES if format_of(name).is_file else _UNITS.get(name) for name in formats}
    units = {unit for each in known.values() for unit in each or ()}
    if unit in units or None in known.values():
        return None
    what = "it counts records of Kafka, files or bytes of folders, and versions of Delta Lake"
    fix = f"use {{{min(units - {'bytes'})}: ...}}" if units else "for example, use `watermark_behind` or `no_rows_for`"
    return f"sqlstream cannot count the {unit} that its sources have left; {what}", fix


def unfit_alerts(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> list[Finding]:
    """Returns a warning for each rule about watermarks or state that a model sets itself although its query has none,
    and for each rule of the project that fits none of its queries, if that is certain.
    """
    return [*_of_models(compiled, analyses), *_of_project(compiled, analyses)]


def _of_models(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> Iterator[Finding]:
    for unique_id, model in compiled.models.items():
        for kind, own, location in _own_rules(model):
            if unique_id in analyses and _why_unused(compiled, model, kind, own) is None:
                for reason in _why_stateless(kind, analyses[unique_id]):
                    yield Finding(CODE, _unused_message(model, kind), *reason, location, Severity.WARNING)


def _of_project(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> Iterator[Finding]:
    target = compiled.project.target
    for kind, alert in target.alerts.by_kind.items():
        queries = [model for model in compiled.models.values() if _follows_project(model, kind)]
        queries.sort(key=lambda model: not model.streaming)  # the reasons of streams say more
        found = (_why_unfit(compiled, model, kind, alert, analyses) for model in queries)
        # The first query that the rule fits ends the search: then it is used.
        reasons = [reason for reason in takewhile(bool, found) if reason]
        if alert.is_on and reasons and len(reasons) == len(queries):
            (why, fix), example = reasons[0], "" if len(queries) == 1 else "for example, "
            yield Finding(
                CODE,
                f"`{kind}` applies to no query of this project",
                f"{example}`{queries[0].name}`: {why}",
                fix,
                target.location_of(f"alerts.rules.{kind}"),
                Severity.WARNING,
            )


def _follows_project(model: CompiledModel, kind: AlertKind) -> bool:
    """Returns whether the query of a model, if it has one, has the project's rule of this kind."""
    own = {} if model.config.alerts is None else model.config.alerts.by_kind
    return model.output is not None and kind not in own


def _why_unfit(
    compiled: CompiledProject, model: CompiledModel, kind: AlertKind, alert: AlertRule, analyses: Mapping[str, Analysis]
) -> tuple[str, str] | None:
    reason = _why_unused(compiled, model, kind, alert)
    if reason is not None or model.unique_id not in analyses:
        return reason
    return next(_why_stateless(kind, analyses[model.unique_id]), None)


_ON_WATERMARKS = (AlertKind.WATERMARK_BEHIND, AlertKind.WATERMARK_AHEAD)


def _why_stateless(kind: AlertKind, analysis: Analysis) -> Iterator[tuple[str, str]]:
    if kind not in (*_ON_WATERMARKS, AlertKind.LATE_ROWS_OVER, AlertKind.STATE_ROWS_OVER):
        return
    from sqlstream.compiler.flow.nodes import (  # only for rules on a query's operators
        EventTimeWatermark,
        Opaque,
        kept_state,
    )

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
