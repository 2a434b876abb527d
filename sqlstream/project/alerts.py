"""The alerts of a project as frozen values: the rules, and where the alerts go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlstream.location import Location
from sqlstream.project.secrets import OptionValue

ALERTS = "sqlstream_alerts"
"""The name of the rows in sinks whose path or table contains `{{ model.name }}`."""


class AlertKind(StrEnum):
    """The conditions of a query that alerts are about, as in YAML."""

    NO_ROWS_FOR = "no_rows_for"
    LAG_OVER = "lag_over"
    WATERMARK_BEHIND = "watermark_behind"
    WATERMARK_AHEAD = "watermark_ahead"
    FAILED = "failed"
    RESTARTS_OVER = "restarts_over"
    LATE_ROWS_OVER = "late_rows_over"
    STATE_ROWS_OVER = "state_rows_over"
    BATCH_SLOWER = "batch_slower_than_trigger"
    QUARANTINED_OVER = "quarantined_over"


@dataclass(frozen=True)
class AlertRule:
    """When an alert of one kind is raised: when the value is over `limit` (seconds for times, otherwise a count; of
    slow batches in a row) for `for_seconds`. It is resolved at `resolve_at` or less. `unit` is what `lag_over` counts.
    Kinds that count events count those of the last `per_seconds`. A rule that is not `is_on` replaces another one.
    """

    limit: float = 0.0
    resolve_at: float = 0.0
    for_seconds: float = 0.0
    per_seconds: float = 0.0
    unit: str = ""
    is_on: bool = True


@dataclass(frozen=True)
class Webhook:
    """A URL that gets alerts as JSON, in the `form` json, slack or pagerduty. `routing_key` is for PagerDuty."""

    url: OptionValue
    form: str = "json"
    headers: Mapping[str, OptionValue] = field(default_factory=dict)
    routing_key: OptionValue = ""

    @property
    def options(self) -> Mapping[str, OptionValue]:
        """All values that can name secrets."""
        return {**self.headers, "webhook": self.url, "routing_key": self.routing_key}


@dataclass(frozen=True)
class Channel:
    """Where alerts go: a webhook, a command, or a sink; exactly one of them is set. `location` is that of the name of
    the sink, or of the channel.
    """

    name: str
    location: Location
    webhook: Webhook | None = None
    command: tuple[str, ...] = ()
    sink: str | None = None
    timeout_seconds: float = 10.0


@dataclass(frozen=True)
class Alerts:
    """The alerts of a project: rules that apply to all queries, with their `places`, channels, and the time after which
    an open alert is sent again (None: never).
    """

    rules: Mapping[AlertKind, AlertRule] = field(default_factory=dict)
    places: Mapping[AlertKind, Location] = field(default_factory=dict)
    channels: tuple[Channel, ...] = ()
    repeat_seconds: float | None = None

    @property
    def sink(self) -> Channel | None:
        """The channel that writes to a sink, if there is one."""
        return next((channel for channel in self.channels if channel.sink is not None), None)


NO_ALERTS = Alerts()
"""The alerts of a project that declares none."""
