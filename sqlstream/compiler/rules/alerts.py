"""Rules about alerts: rules of a model that can never apply to its query."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.errors import Severity
from sqlstream.location import Location
from sqlstream.project.alerts import AlertKind, AlertRule
from sqlstream.project.files.files import PROJECT_FILE
from sqlstream.project.formats.formats import format_of

CODE = "unused-alert"

_UNITS = {"kafka": ("records",), "delta": ("versions",), "iceberg": (), "rate": (), "socket": ()}
"""What can be counted that a source has left to read, by its format."""

_UNITS_OF_FILES = ("files", "bytes")


@rule(CODE, severity=Severity.WARNING)
def unused_alerts(compiled: CompiledProject) -> Problems:
    """A rule for alerts can apply to the query of its model, or to a query of the project."""
    for model in compiled.models.values():
        for kind, own, location in own_rules(model):
            reason = why_unused(compiled, model, kind, own)
            if reason is not None:
                yield Problem(unused_message(model, kind), *reason, location)


def own_rules(model: CompiledModel) -> Iterator[tuple[AlertKind, AlertRule, Location]]:
    """Yields the rules that the properties or config() of a model turn on, with the location of `alerts`."""
    if model.config.alerts is None or model.file.rows_of is not None:
        return
    places: dict[str, Location] = {}
    for patch in (*model.file.configs, model.rendered.config):
        located = patch.get("alerts")
        if located is not None and isinstance(located.value, dict) and located.location.path != PROJECT_FILE:
            places |= dict.fromkeys(located.value, located.location)
    for kind, rule_ in model.config.alerts.by_kind.items():
        if rule_.is_on and str(kind) in places:
            yield kind, rule_, places[str(kind)]


def unused_message(model: CompiledModel, kind: AlertKind) -> str:
    """Returns the first line of the finding about a rule."""
    return f"`{kind}` can never apply to `{model.name}`"


def why_unused(
    compiled: CompiledProject, model: CompiledModel, kind: AlertKind, alert: AlertRule
) -> tuple[str, str] | None:
    """Returns the reason and the fix, None if the rule can apply as far as the declarations show."""
    if model.output is None:
        return "it has no sink, so it has no query that could raise alerts", "set it on the models that read it"
    if not model.streaming:
        reason = "it is a batch model, which is written once per run; only `failed` applies to it"
        return None if kind is AlertKind.FAILED else (reason, "remove the rule")
    if kind is AlertKind.BATCH_SLOWER and model.config.trigger.kind != "interval":
        return (
            f"its trigger is {model.config.trigger}, so no batch has a time by which it should end",
            "set a trigger with an interval, for example `trigger: 1 minute`, or remove the rule",
        )
    tables = compiled.tables_of(model.unique_id)
    if kind is AlertKind.QUARANTINED_OVER and not any(table.on_corrupt == "quarantine" for table in tables):
        reason = "none of the sources that it reads has `on_corrupt: quarantine`"
        return reason, "set `on_corrupt: quarantine` on a source, or remove the rule"
    if kind is AlertKind.LAG_OVER:
        return _why_no_lag(alert.unit, {table.format for table in tables if table.mode == "stream"})
    return None


def _why_no_lag(unit: str, formats: set[str]) -> tuple[str, str] | None:
    known = {name: _UNITS_OF_FILES if format_of(name).is_file else _UNITS.get(name) for name in formats}
    units = {unit for each in known.values() for unit in each or ()}
    if unit in units or None in known.values():
        return None
    what = "it counts records of Kafka, files or bytes of folders, and versions of Delta Lake"
    fix = f"use {{{min(units - {'bytes'})}: ...}}" if units else "for example, use `watermark_behind` or `no_rows_for`"
    return f"sqlstream cannot count the {unit} that its sources have left; {what}", fix
