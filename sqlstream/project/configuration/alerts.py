"""Alerts: their kinds, their rules, the channels that get them, and the key `alerts` in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, TypeGuard

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from sqlstream.project.configuration.fields import (
    Document,
    Interval,
    Name,
    Options,
    OptionText,
    parse_option,
)
from sqlstream.project.configuration.trigger import interval_seconds, invalid, parse_interval
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.wording import did_you_mean, given, quoted

MARGIN = 0.9
"""The part of the limit at which an alert is resolved, unless the rule says otherwise."""

DEFAULT_PER = "1 hour"

PERCENT = "percent"
"""The key of a limit, from 0 to 100, that can have decimals."""

SLOW_BATCHES = 3


class AlertKind(StrEnum):
    """The conditions of a query that alerts are about, as in YAML."""

    NO_ROWS_FOR = "no_rows_for"
    LAG_OVER = "lag_over"
    WATERMARK_BEHIND = "watermark_behind"
    WATERMARK_AHEAD = "watermark_ahead"
    FAILED = "failed"
    RESTARTS_OVER = "restarts_over"
    LATE_ROWS_OVER = "late_rows_over"
    EXPECTATION_FAILED = "expectation_failed_over"
    STATE_ROWS_OVER = "state_rows_over"
    BATCH_SLOWER = "batch_slower_than_trigger"
    QUARANTINED_OVER = "quarantined_over"


@dataclass(frozen=True)
class AlertRule:
    """When an alert of one kind is raised: when the value is over `limit` (seconds for times, otherwise a count; of
    slow batches in a row) for `for_seconds`. It is resolved at `resolve_at` or less. `unit` is what a kind counts
    that can count different things. Kinds that count events count those of the last `per_seconds`. A rule that is not
    `is_on` replaces another one.
    """

    limit: float = 0.0
    resolve_at: float = 0.0
    for_seconds: float = 0.0
    per_seconds: float = 0.0
    unit: str = ""
    is_on: bool = True


@dataclass(frozen=True)
class Form:
    """How the rule of a kind is written. `limits` are the keys of its limit in a mapping; a limit alone means the first
    one. The other keys are in `settings`.
    """

    limits: tuple[str, ...]
    example: str
    settings: tuple[str, ...] = ()
    is_time: bool = False
    least: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys of the mapping."""
        return (*self.limits, *self.settings)


_LEVEL = ("for", "resolve_at")
_COUNTED = ("per", "resolve_at")

FORMS: Mapping[AlertKind, Form] = {
    AlertKind.NO_ROWS_FOR: Form(("time",), "30 minutes", is_time=True),
    AlertKind.LAG_OVER: Form(("records", "files", "bytes", "versions"), "100000", _LEVEL),
    AlertKind.WATERMARK_BEHIND: Form(("time",), "15 minutes", _LEVEL, is_time=True),
    AlertKind.WATERMARK_AHEAD: Form(("time",), "1 hour", _LEVEL, is_time=True),
    AlertKind.RESTARTS_OVER: Form(("restarts",), "3", _COUNTED),
    AlertKind.LATE_ROWS_OVER: Form(("rows",), "100", _COUNTED),
    AlertKind.EXPECTATION_FAILED: Form(("violations", PERCENT), "100", _COUNTED),
    AlertKind.STATE_ROWS_OVER: Form(("rows",), "1000000", _LEVEL),
    AlertKind.BATCH_SLOWER: Form(("batches",), "true", least=1),
    AlertKind.QUARANTINED_OVER: Form(("rows",), "0", _COUNTED),
}
"""The forms of all kinds but `failed`, which is only on or off."""


def parse_rule(kind: AlertKind, value: object) -> AlertRule:
    """Returns the rule of `kind`. Raises: PydanticCustomError with an example."""
    if isinstance(value, AlertRule):
        return value
    if value is False:
        return AlertRule(is_on=False)
    if kind is AlertKind.FAILED:
        if value is True:
            return AlertRule()
        raise invalid(f"must be true or false, but is {given(value)}", "use `failed: true`")
    form = FORMS[kind]
    if value is True and kind is AlertKind.BATCH_SLOWER:
        value = SLOW_BATCHES
    if isinstance(value, dict):
        return _from_mapping(form, value)
    name = form.limits[0]
    if form.is_time:
        return _rule(form, name, {name: parse_interval(value)})
    if not _is_count(value, form.least):
        raise invalid(f"cannot be {given(value)}", _fix_of_count(form))
    return _rule(form, name, {name: value})


def _from_mapping(form: Form, value: Mapping[object, object]) -> AlertRule:
    unknown = next((str(key) for key in value if key not in form.keys), None)
    if unknown is not None:
        raise invalid(f"has no key {quoted(unknown)}", did_you_mean(unknown, form.keys), unknown, is_unknown=True)
    limits = [name for name in form.limits if name in value]
    if len(limits) != 1:
        names = " or ".join(map(quoted, form.limits))
        raise invalid(f"needs {'exactly one of ' if len(form.limits) > 1 else ''}{names}", _mapping_example(form))
    return _rule(form, limits[0], {str(key): item for key, item in value.items()})


def _rule(form: Form, name: str, values: Mapping[str, object]) -> AlertRule:
    limit = _limit(form, values, name, form.least)
    resolve_at = (
        _limit(form, values, name, 0, "resolve_at") if "resolve_at" in values else _with_margin(form, name, limit)
    )
    if resolve_at > limit:
        fix = "use a `resolve_at` below the limit, or remove it"
        raise invalid("has a resolve_at that is over its limit", fix, "resolve_at")
    return AlertRule(
        limit=limit,
        resolve_at=resolve_at,
        for_seconds=_seconds(values, "for", zero=True) if "for" in values else 0.0,
        per_seconds=_seconds({"per": DEFAULT_PER, **values}, "per") if "per" in form.settings else 0.0,
        unit=name if len(form.limits) > 1 else "",
    )


def _with_margin(form: Form, name: str, limit: float) -> float:
    return limit * MARGIN if form.is_time or name == PERCENT else float(int(limit * MARGIN))


def _seconds(values: Mapping[str, object], name: str, *, zero: bool = False) -> float:
    """Returns the interval of a key in seconds. Raises: PydanticCustomError, which names the key."""
    try:
        return interval_seconds(parse_interval(values[name], zero=zero))
    except PydanticCustomError as error:
        fix = str((error.context or {})["fix"])
        raise invalid(f"cannot have {given(values[name])} as `{name}`", fix, name) from None


def _limit(form: Form, values: Mapping[str, object], name: str, least: int, key: str | None = None) -> float:
    """Returns the value of `key`, by default `name`, which is in the unit of the limit `name`."""
    key = key or name
    value = values[key]
    if form.is_time:
        return _seconds(values, key)
    if name == PERCENT:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 100:
            return float(value)
        raise invalid(f"cannot have {given(value)} as `{key}`", "use a number from 0 to below 100, such as 0.5", key)
    if _is_count(value, least):
        return float(value)
    raise invalid(f"cannot have {given(value)} as `{key}`", _fix_of_count(form), key)


def _is_count(value: object, least: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _fix_of_count(form: Form) -> str:
    example = form.example if form.example.isdigit() else "3"
    fix = f"use a whole number, for example `{example}`"
    if form.least:
        fix = f"{fix}, from {form.least} on"
    if len(form.limits) > 1:
        fix = f"{fix} ({form.limits[0]}) or {{{form.limits[1]}: {5 if form.limits[1] == PERCENT else 500}}}"
    return f"{fix}, or `false`"


def _mapping_example(form: Form) -> str:
    more = "".join(f", {key}: 10 minutes" for key in form.settings[:1])
    return f"for example, use {{{form.limits[0]}: {form.example}{more}}}"


def _schema(kind: AlertKind) -> dict[str, Any]:
    if kind is AlertKind.FAILED:
        return {"type": "boolean"}
    form = FORMS[kind]
    interval = {"type": "string", "examples": ["10 minutes"]}
    limit: dict[str, Any] = interval if form.is_time else {"type": "integer", "minimum": form.least}
    properties = {key: interval if key in ("for", "per") else limit for key in form.keys}
    if PERCENT in form.limits:
        percent = {"type": "number", "minimum": 0, "exclusiveMaximum": 100}
        properties |= {PERCENT: percent, "resolve_at": {"type": "number", "minimum": 0}}
    mapping = {"type": "object", "properties": properties, "additionalProperties": False}
    switch = {"type": "boolean"} if kind is AlertKind.BATCH_SLOWER else {"type": "boolean", "enum": [False]}
    return {"anyOf": [limit, switch, mapping]}


def _parsed(kind: AlertKind) -> PlainValidator:
    return PlainValidator(lambda value: parse_rule(kind, value))


def _written(kind: AlertKind) -> WithJsonSchema:
    return WithJsonSchema(_schema(kind))


NoRowsFor = Annotated[AlertRule, _parsed(AlertKind.NO_ROWS_FOR), _written(AlertKind.NO_ROWS_FOR)]
LagOver = Annotated[AlertRule, _parsed(AlertKind.LAG_OVER), _written(AlertKind.LAG_OVER)]
WatermarkBehind = Annotated[AlertRule, _parsed(AlertKind.WATERMARK_BEHIND), _written(AlertKind.WATERMARK_BEHIND)]
WatermarkAhead = Annotated[AlertRule, _parsed(AlertKind.WATERMARK_AHEAD), _written(AlertKind.WATERMARK_AHEAD)]
Failed = Annotated[AlertRule, _parsed(AlertKind.FAILED), _written(AlertKind.FAILED)]
RestartsOver = Annotated[AlertRule, _parsed(AlertKind.RESTARTS_OVER), _written(AlertKind.RESTARTS_OVER)]
LateRowsOver = Annotated[AlertRule, _parsed(AlertKind.LATE_ROWS_OVER), _written(AlertKind.LATE_ROWS_OVER)]
ExpectationFailed = Annotated[AlertRule, _parsed(AlertKind.EXPECTATION_FAILED), _written(AlertKind.EXPECTATION_FAILED)]
StateRowsOver = Annotated[AlertRule, _parsed(AlertKind.STATE_ROWS_OVER), _written(AlertKind.STATE_ROWS_OVER)]
BatchSlower = Annotated[AlertRule, _parsed(AlertKind.BATCH_SLOWER), _written(AlertKind.BATCH_SLOWER)]
QuarantinedOver = Annotated[AlertRule, _parsed(AlertKind.QUARANTINED_OVER), _written(AlertKind.QUARANTINED_OVER)]


class AlertRulesDocument(Document):
    """When a query raises alerts. A model's rule replaces the project's of the same kind; `false` removes it."""

    called: ClassVar[str] = "alert rules"

    no_rows_for: NoRowsFor | None = Field(None, description="The query has emitted no row for this time.")
    lag_over: LagOver | None = Field(
        None,
        description="The lag exceeds this many Kafka records, files or Delta versions.",
    )
    watermark_behind: WatermarkBehind | None = Field(
        None, description="The watermark is behind the clock by more than this."
    )
    watermark_ahead: WatermarkAhead | None = Field(
        None, description="The watermark is ahead of the clock by more than this, so all rows of now are late."
    )
    failed: Failed | None = Field(None, description="The query has failed for good.")
    restarts_over: RestartsOver | None = Field(
        None, description="The query has restarted more often (default: within 1 hour)."
    )
    late_rows_over: LateRowsOver | None = Field(
        None, description="The query has dropped more late rows (default: within 1 hour)."
    )
    expectation_failed_over: ExpectationFailed | None = Field(
        None,
        description="Data tests of the query have had more violations (default: within 1 hour). "
        "`percent`: a test had more in a hundred rows.",
    )
    state_rows_over: StateRowsOver | None = Field(None, description="The state of the query has more rows.")
    batch_slower_than_trigger: BatchSlower | None = Field(
        None, description="So many batches in a row took longer than the interval of the trigger (true: 3)."
    )
    quarantined_over: QuarantinedOver | None = Field(
        None,
        description="The data tests of the query, or one of its sources, have quarantined more rows "
        "(default: within 1 hour).",
    )

    @property
    def by_kind(self) -> Mapping[AlertKind, AlertRule]:
        """The rules that are set, by kind."""
        found = ((kind, getattr(self, kind.value)) for kind in AlertKind)
        return {kind: rule for kind, rule in found if rule is not None}


def _parse_webhook(value: object) -> OptionValue:
    url = parse_option(value)
    if not isinstance(url, str) or url.startswith(("http://", "https://")):
        return url
    raise invalid(f"cannot be {given(url)}", "use an address that begins with https:// or http://")


def _parse_command(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise invalid(
        f"must be a list of texts, but is {given(value)}",
        "use the program and its arguments, for example `[scripts/notify.sh, --urgent]`; there is no shell",
    )


def _parse_repeat(value: object) -> str | None:
    if value is False:
        return None
    try:
        return parse_interval(value)
    except PydanticCustomError as error:
        raise invalid(f"cannot be {given(value)}", f"{(error.context or {})['fix']}, or `false` for never") from None


_TEXT_SCHEMA = {"type": "string"}
Address = Annotated[OptionValue, PlainValidator(_parse_webhook), WithJsonSchema(_TEXT_SCHEMA)]
Command = Annotated[
    tuple[str, ...], PlainValidator(_parse_command), WithJsonSchema({"type": "array", "items": _TEXT_SCHEMA})
]
Repeat = Annotated[
    str | None,
    PlainValidator(_parse_repeat),
    WithJsonSchema({"anyOf": [{"type": "string", "examples": ["4 hours"]}, {"type": "boolean", "enum": [False]}]}),
]


class Channel(Document):
    """Where alerts go: a webhook, a command or a sink."""

    called: ClassVar[str] = "an entry of notify"

    name: Name = Field(description="The name in messages; alerts that are not delivered yet belong to it.")
    webhook: Address | None = Field(None, description="An address that gets a POST with JSON; can contain secrets.")
    format: Literal["json", "slack", "pagerduty"] = Field(
        "json", description="The JSON of the webhook: sqlstream's, Slack's, or PagerDuty's Events API v2."
    )
    headers: Options = Field(default_factory=dict, description="Further headers of the request; can contain secrets.")
    routing_key: OptionText | None = Field(
        None, description="With `format: pagerduty`, the key of the integration; use a secret."
    )
    command: Command | None = Field(
        None, description="A program and its arguments, which gets the JSON on its standard input; there is no shell."
    )
    sink: Name | None = Field(
        None, description="A sink for a row per alert; `{{ model.name }}` in it becomes `sqlstream_alerts`."
    )
    timeout: Interval = Field("10 seconds", description="How long a webhook or command can take.")

    @property
    def timeout_seconds(self) -> float:
        """The timeout in seconds."""
        return interval_seconds(self.timeout)

    @property
    def secret_options(self) -> Mapping[str, OptionValue]:
        """All values of a webhook that can name secrets."""
        url = {} if self.webhook is None else {"webhook": self.webhook}
        return {**self.headers, **url, "routing_key": self.routing_key or ""}

    @model_validator(mode="after")
    def _is_one_channel(self) -> Self:
        kinds = [name for name in ("webhook", "command", "sink") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise invalid(
                f"needs one of `webhook`, `command` and `sink`, but has {' and '.join(kinds) or 'none'}",
                "use a separate entry for each" if kinds else "for example, add `command: [scripts/notify.sh]`",
            )
        of_webhook = {"format", "headers", "routing_key"} & self.model_fields_set
        if of_webhook and self.webhook is None:
            raise invalid(f"sets `{min(of_webhook)}` without `webhook`", "remove the key")
        if (self.format == "pagerduty") != (self.routing_key is not None):
            raise invalid(
                "needs both `format: pagerduty` and `routing_key`, or none of them",
                "set `routing_key` to the key of the integration for the Events API v2, with a secret",
            )
        return self


class AlertsDocument(Document):
    """Alerts of all queries, and where they go."""

    called: ClassVar[str] = "alerts"

    rules: AlertRulesDocument | None = Field(None, description="Rules that apply to all queries.")
    notify: tuple[Channel, ...] = Field((), description="Where alerts go.")
    repeat: Repeat = Field("4 hours", description="After which time to send an open alert again; `false`: never.")

    @property
    def by_kind(self) -> Mapping[AlertKind, AlertRule]:
        """The rules that are set, by kind."""
        return {} if self.rules is None else self.rules.by_kind

    @property
    def repeat_seconds(self) -> float | None:
        """After which time to send an open alert again, None for never."""
        return None if self.repeat is None else interval_seconds(self.repeat)

    @property
    def sink_channel(self) -> Channel | None:
        """The channel that writes to a sink, if there is one."""
        return next((channel for channel in self.notify if channel.sink is not None), None)
