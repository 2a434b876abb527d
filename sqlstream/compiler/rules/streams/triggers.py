"""Rules about triggers."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.judged import is_judged
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.project.configuration.trigger import interval_seconds

SHORTEST_REAL_TIME = 5.0
"""Seconds: what `spark.sql.streaming.realTimeMode.minBatchDuration` is unless a target sets it."""


@rule("real-time-trigger")
def short_real_time_triggers(compiled: CompiledProject) -> list[Finding]:
    """The interval of a real-time trigger is the length of its batches and has a minimum."""
    return [
        Finding(
            "real-time-trigger",
            f"the real-time trigger of `{model.name}` is too short: {model.config.trigger.interval}",
            "the interval is the length of a batch, within which rows are written as they arrive; Spark needs "
            "at least 5 seconds",
            "for example, use trigger={'real_time': '5 minutes'}",
            model.place_of("trigger"),
        )
        for model in compiled.models.values()
        if model.output is not None
        and model.streaming
        and model.config.trigger.kind == "real_time"
        and is_judged(compiled.project.target)
        and interval_seconds(model.config.trigger.interval or "") < SHORTEST_REAL_TIME
    ]
