"""When a query emits its rows, and how it reads each model, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.emission import IDLE_BATCHES, POLICY, Delay, Emission, Example, ModelRead, Step, WaitsFor
from sqlstream.compiler.sql.edits import Where
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.configuration.trigger import Trigger
from sqlstream.project.formats.guarantees import guarantee_of

Locate = Callable[[Where, str], Location]
"""Returns the location of an operator, or of a key of its source."""

RULES = {
    WaitsFor.ROW: "emits each row in the batch that reads it",
    WaitsFor.KEY: "the first row of each key is emitted in the batch that reads it; later rows with the same key are "
    "dropped",
    WaitsFor.RUN: "is a batch model: all of its inputs are static, and each run emits all rows once",
    WaitsFor.CHANGE: "each batch emits the groups that it changes, with their current values",
    WaitsFor.WHOLE: "each batch emits all groups, with their current values",
    WaitsFor.WINDOW: "a window is emitted once, in the batch after the watermark reaches its end",
    WaitsFor.SESSION: "a session is emitted once, in the batch after the watermark reaches its end (its last event "
    "plus the gap)",
    WaitsFor.TIME: "a group is emitted once, in the batch after the watermark reaches `{time}`",
    WaitsFor.MATCH: "matching rows are emitted in the batch in which the later one arrives",
    WaitsFor.UNMATCHED: "a row without a match is emitted once the watermark rules out a match, in the next batch",
    WaitsFor.FIRST: "only the first rows over the whole life of the query are emitted, in the batch that reads them",
    WaitsFor.UNKNOWN: "it is unknown when its rows are emitted",
}

TIMED = frozenset({WaitsFor.WINDOW, WaitsFor.SESSION, WaitsFor.TIME, WaitsFor.UNMATCHED})
"""The releases that wait for the watermark."""


def emission_text(
    model: CompiledModel, emission: Emission, locate: Locate, reads: Sequence[ModelRead] = (), *, is_foreseen: bool
) -> str:
    """Returns a paragraph for each operator that delays rows, one for the watermarks, one for the batches, and one for
    the models that the query reads.
    """
    paragraphs = [[_head(model), *_guarantee_lines(model)]]
    paragraphs += [_step_lines(step, emission, locate) for step in emission.steps]
    if any(step.release in TIMED for step in emission.steps):
        paragraphs.append(list(_watermark_lines(emission, locate)))
        paragraphs.append([_batches(model.config.trigger, emission)])
    paragraphs += [reads_lines(reads)] if reads else []
    if not is_foreseen:
        paragraphs.append(
            ["The settings of the target change how Spark parses queries; this output assumes the defaults."]
        )
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def refused_text(model: CompiledModel) -> str:
    """Returns the line above the errors of a query that cannot run."""
    return f"`{model.name}` cannot run, so it emits no rows:"


def emission_json(
    model: CompiledModel, emission: Emission, locate: Locate, reads: Sequence[ModelRead] = (), *, is_foreseen: bool
) -> str:
    """Returns when a query emits its rows as one JSON object. Times are ISO 8601 in UTC, delays are in seconds, null
    means unknown.
    """
    content = {
        "succeeded": True,
        "model": model.name,
        "kind": model.kind,
        "output_mode": model.config.output_mode,
        "guarantees": {output.sink: vars(guarantee_of(output.format, model.mode)) for output in model.outputs},
        "operators": [_step_json(step, locate) for step in emission.steps],
        "watermarks": [
            {
                "column": delay.column,
                "delay": delay.written,
                "delay_seconds": None if delay.span is None else delay.span.total_seconds(),
                "location": str(locate(delay.where, "watermark")),
            }
            for delay in emission.delays
        ],
        "filters": [
            {"location": str(locate(item.where, "watermark")), "column": item.column} for item in emission.filters
        ],
        "idle_batches": emission.idle_batches,
        "watermark_policy": "max" if emission.highest else "min",
        "is_foreseen": is_foreseen,
        "reads": reads_json(reads),
    }
    return json.dumps(content, indent=2)


def _step_json(step: Step, locate: Locate) -> dict[str, object]:
    example = step.example
    return {
        "operator": step.operator or None,
        "location": str(locate(step.where, "watermark")),
        "release": str(step.release),
        "event_time": step.time,
        "example": None
        if example is None
        else {
            "start": example.start.isoformat(),
            "end": example.end.isoformat(),
            "events": [event.isoformat() for event in example.events],
        },
        "unknown": step.unknown,
    }


def _head(model: CompiledModel) -> str:
    sinks = ", ".join(output.sink for output in model.outputs) or "-"
    return f"{model.name} -> {sinks}, {f'{model.config.output_mode} mode' if model.streaming else 'once per run'}"


def _guarantee_lines(model: CompiledModel) -> Iterator[str]:
    for output in model.outputs:
        guarantee = guarantee_of(output.format, model.mode)
        yield f"  {output.format}: {guarantee.rows} ({guarantee.means})"


def _step_lines(step: Step, emission: Emission, locate: Locate) -> list[str]:
    rule = RULES[step.release].format(time=step.time)
    place = f"{step.operator or 'a part of the query'} ({locate(step.where, 'watermark')})"
    lines = ["the query" if step.release in (WaitsFor.ROW, WaitsFor.RUN) else place, f"  {rule}"]
    if step.example is not None:
        lines.append(f"  for example, {_example(step, step.example, emission)}")
    if step.unknown is not None:
        lines.append(f"  {'' if step.release is WaitsFor.UNKNOWN else 'no example: '}{step.unknown}")
    return lines


def _example(step: Step, example: Example, emission: Emission) -> str:
    times = (example.start, example.end, *example.events)
    dated = len({time.date() for time in times}) > 1
    start, end, *events = (_time(time, dated=dated) for time in times)
    what = {
        WaitsFor.WINDOW: f"the window {start}-{end}" if not dated else f"the window from {start} to {end}",
        WaitsFor.SESSION: f"a session whose last event is at {start}",
    }.get(step.release, f"the group of {start}")
    return f"{what} is emitted when {_cause(events, emission)}, in the next batch (times in UTC)"


def _cause(events: list[str], emission: Emission) -> str:
    if len(events) == 1:
        return f"an event with the time {events[0]} or later has arrived"
    pairs = zip(emission.delays, events, strict=True)
    each = [f"one with the time {event} or later for {_shown(delay)}" for delay, event in pairs]
    return f"an event has arrived, {(' or ' if emission.highest else ' and ').join(each)}"


def _shown(delay: Delay) -> str:
    return f"`{delay.column}` minus {delay.written.lower()}"


def _time(moment: datetime, *, dated: bool) -> str:
    """Returns `12:00`, more precisely if needed, and with the date if `dated`."""
    if moment.microsecond % timedelta(milliseconds=1).microseconds:
        precision = "microseconds"
    elif moment.microsecond:
        precision = "milliseconds"
    else:
        precision = "seconds" if moment.second else "minutes"
    text = moment.time().isoformat(precision)
    return f"{moment.date()} {text}" if dated else text


def _watermark_lines(emission: Emission, locate: Locate) -> Iterator[str]:
    for delay in emission.delays:
        yield _watermark_line(delay, locate)
    if len(emission.delays) > 1 and emission.highest:
        yield f"  the highest watermark counts ({POLICY} is max)"
    elif len(emission.delays) > 1:
        yield "  the lowest watermark counts: while one of the inputs has no new events, no more rows are emitted"
    else:
        yield "  it advances only with new events: without new events, no more rows are emitted"
    for item in emission.filters:
        place = locate(item.where, "watermark")
        if item.column is not None:
            yield (
                f"  rows that the condition on `{item.column}` at {place} removes advance it, because Spark checks the "
                "event time after the watermark"
            )
        else:
            what = "the other conditions" if item.beside else "the condition"
            removes = "remove" if item.beside else "removes"
            yield f"  rows that {what} at {place} {removes} do not advance it, because Spark checks them first"


def _watermark_line(delay: Delay, locate: Locate) -> str:
    return f"watermark: the latest {_shown(delay)} ({locate(delay.where, 'watermark')})"


def _batches(trigger: Trigger, emission: Emission) -> str:
    when = trigger.facts.next_batch.format(interval=trigger.interval)
    if not trigger.facts.has_idle_batches:
        return f"next batch: {when}"
    if emission.idle_batches:
        return f"next batch: {when}, even without new rows"
    return f"next batch: {when}, only with new rows ({IDLE_BATCHES} is false)"


_STORED = "with materialized: view, this query would compute it, without the delay of another query"
_VIEW = (
    "with materialized: stored and a sink, one query would compute it; its rows would arrive here a batch later, "
    "without its watermark"
)


def reads_lines(reads: Sequence[ModelRead]) -> list[str]:
    """Returns a heading and two lines for each model, parents first."""
    return ["reads", *(line for read in reads for line in (f"  {_how(read)}", f"    {_other_way(read)}"))]


def _how(read: ModelRead) -> str:
    others = plural(read.queries - 1, "more query", "more queries")
    reads = "reads" if read.queries == 2 else "read"
    if read.is_stored:
        return f"{read.model}: its stored output{f'; {others} {reads} it' if read.queries > 1 else ''}"
    if read.queries == 1:
        return f"{read.model}: this query computes it"
    state = f", each with its own state of {' and '.join(read.state)}" if read.state else ""
    return f"{read.model}: this query and {others} compute it{state}"


def _other_way(read: ModelRead) -> str:
    return _STORED if read.is_stored else _VIEW


def reads_json(reads: Sequence[ModelRead]) -> list[dict[str, object]]:
    """Returns the models that a query reads, as a list of plain values."""
    return [
        {
            "model": read.model,
            "materialized": "stored" if read.is_stored else "view",
            "queries": read.queries,
            "state": list(read.state),
        }
        for read in reads
    ]
