"""Rules about triggers."""

from __future__ import annotations

from datetime import timedelta

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.intervals import parse_interval
from sqlstream.compiler.judged import is_judged
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding

SHORTEST_REAL_TIME = timedelta(seconds=5)
"""What `spark.sql.streaming.realTimeMode.minBatchDuration` is unless a target sets it."""

SUPPORTED = frozenset({"default", "interval", "available_now", "once"})


@rule("unsupported-trigger")
def unsupported_triggers(compiled: CompiledProject) -> list[Finding]:
    """Continuous and real-time triggers are read, but this version does not run them."""
    return [
        Finding(
            "unsupported-trigger",
            f"`{model.name}` asks for a {model.config.trigger.kind.replace('_', '-')} trigger",
            "this version of sqlstream runs micro-batches only",
            "use trigger='10 seconds', 'available_now' or 'once'",
            model.place_of("trigger"),
        )
        for model in compiled.models.values()
        if model.output is not None and model.config.trigger.kind not in SUPPORTED
    ]


@rule("real-time-trigger")
def short_real_time_triggers(compiled: CompiledProject) -> list[Finding]:
    """The interval of a real-time trigger is how long each of its batches lasts, and has a least length."""
    return [
        Finding(
            "real-time-trigger",
            f"the real-time trigger of `{model.name}` is too short: {model.config.trigger.interval}",
            "it says how long a batch lasts, in which rows are written as they come; Spark wants 5 seconds at least",
            "write for example trigger={'real_time': '5 minutes'}",
            model.place_of("trigger"),
        )
        for model in compiled.models.values()
        if model.output is not None
        and model.config.trigger.kind == "real_time"
        and is_judged(compiled.project.target)
        and (parse_interval(model.config.trigger.interval or "").span or SHORTEST_REAL_TIME) < SHORTEST_REAL_TIME
    ]
