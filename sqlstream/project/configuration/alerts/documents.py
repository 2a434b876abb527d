"""The key `alerts` in YAML: rules, and the channels that get the alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from sqlstream.project.alerts import AlertKind, AlertRule
from sqlstream.project.configuration.alerts.rules import (
    BatchSlower,
    Failed,
    LagOver,
    LateRowsOver,
    NoRowsFor,
    QuarantinedOver,
    RestartsOver,
    StateRowsOver,
    WatermarkAhead,
    WatermarkBehind,
)
from sqlstream.project.configuration.fields import (
    Document,
    Interval,
    Name,
    Options,
    OptionText,
    parse_option,
)
from sqlstream.project.configuration.trigger import invalid, parse_interval
from sqlstream.project.secrets import OptionValue
from sqlstream.project.wording import given


class AlertRulesDocument(Document):
    """When a query raises alerts. A model's rule replaces the project's of the same kind; `false` removes it."""

    label: ClassVar[str] = "alert rules"

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
    state_rows_over: StateRowsOver | None = Field(None, description="The state of the query has more rows.")
    batch_slower_than_trigger: BatchSlower | None = Field(
        None, description="So many batches in a row took longer than the interval of the trigger (true: 3)."
    )
    quarantined_over: QuarantinedOver | None = Field(
        None, description="The sources of the query have quarantined more records (default: within 1 hour)."
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


class ChannelDocument(Document):
    """Where alerts go: a webhook, a command or a sink."""

    label: ClassVar[str] = "an entry of notify"

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

    label: ClassVar[str] = "alerts"

    rules: AlertRulesDocument | None = Field(None, description="Rules that apply to all queries.")
    notify: tuple[ChannelDocument, ...] = Field((), description="Where alerts go.")
    repeat: Repeat = Field("4 hours", description="After which time to send an open alert again; `false`: never.")
