"""Where the runs of a project write their metrics as rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.location import Location

METRICS = "sqlstream_metrics"
"""The name of the rows in sinks whose path or table contains `{{ model.name }}`."""


@dataclass(frozen=True)
class MetricsSink:
    """The name of a sink, and how often to write to it, in seconds. `location` is that of the name."""

    sink: str
    interval_seconds: float
    location: Location
