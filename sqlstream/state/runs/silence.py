"""Explains why a query emits no rows: compares its input with the conditions of its operators."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlstream.compiler.emission import Delay, Emission, Step, TimeWindow, WaitsFor, read_window
from sqlstream.state.runs.progress import Figures, SilentSpan, moment
from sqlstream.times import utc_text

QUIET_BATCHES = 3
"""The number of batches with input and without output after which sqlstream looks for the reason."""

TIMED = frozenset({WaitsFor.WINDOW, WaitsFor.SESSION, WaitsFor.TIME, WaitsFor.UNMATCHED})
"""The operators that wait for the watermark."""

EPOCH = datetime.fromtimestamp(0, UTC)
MILLISECOND = timedelta(milliseconds=1)


class Cause(StrEnum):
    """Why a query holds its rows back."""

    NO_INPUT = "no_input"
    CORRUPT = "corrupt"
    FILTERED = "filtered"
    LATE = "late"
    DUPLICATES = "duplicates"
    LIMIT = "limit"
    WATERMARK = "watermark"
    IDLE_SOURCE = "idle_source"
    NO_MATCH = "no_match"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Silence:
    """Why a query emits nothing, as a word and as one or two sentences without a full stop. `due_event` is the event
    time (UTC, ISO 8601) that releases its next rows, if one watermark holds them back.
    """

    cause: Cause
    text: str
    due_event: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """Returns the entry of target/run_results.json."""
        return {"cause": str(self.cause), "text": self.text, "due_event": self.due_event}


def recorded_silence(entry: Mapping[str, Any], *, has_input: bool) -> Mapping[str, Any] | None:
    """Returns the `silence` of an entry of run_results.json; None if it says that a query lacks input, and the query
    `has_input` according to its checkpoint: a batch that runs, or something that is not read yet.
    """
    silence = entry.get("silence")
    if not isinstance(silence, Mapping) or (has_input and silence.get("cause") == Cause.NO_INPUT):
        return None
    return silence


def why_silent(figures: Figures, emission: Emission | None) -> Silence | None:
    """Returns why a query has emitted nothing for `QUIET_BATCHES` batches with input, or that it had no input; None if
    it emits rows, or has run fewer batches. `emission` describes the operators of the query, None if unknown.
    """
    quiet = figures.quiet
    if figures.sums["rows_out"] and quiet.batches == 0:
        return None
    if figures.batches == 0 or (figures.sums["rows_in"] == 0 and quiet.batches == 0):
        return no_input(tuple(name for name, _ in quiet.source_rows))
    return _why_quiet(figures, emission) if quiet.batches >= QUIET_BATCHES else None


def why_ended_silent(figures: Figures, emission: Emission | None) -> Silence | None:
    """Returns why a query that has ended emitted nothing, after any number of batches; None if it emitted rows or had
    no input.
    """
    if figures.sums["rows_out"] != 0 or figures.quiet.batches == 0:
        return None
    if figures.sums["dropped_records"] and figures.sums["dropped_records"] == figures.sums["rows_in"]:
        return Silence(
            Cause.CORRUPT, f"{_rows_read(figures.quiet)}, but all are corrupt, and the source drops corrupt records"
        )
    return _why_quiet(figures, emission)


def _why_quiet(figures: Figures, emission: Emission | None) -> Silence | None:
    quiet = figures.quiet
    if figures.last is None:
        return None
    if figures.last.state is None:
        removed_by = "data tests, conditions or joins" if figures.sums["violations"] else "conditions or joins"
        return Silence(Cause.FILTERED, f"{_rows_read(quiet)}, but {removed_by} in the query removed all of them")
    if quiet.updated_rows == 0:
        return _before_state(figures, emission)
    return _in_state(figures, emission)


def no_input(sources: tuple[str, ...] = ()) -> Silence:
    """Returns that a query has read nothing since it started. `sources` are its sources, if known."""
    where = f" from {_listed(sources, 'or')}" if sources else ""
    return Silence(Cause.NO_INPUT, f"no rows have arrived{where} since it started")


def nothing_new(sources: tuple[str, ...]) -> Silence:
    """Returns that a query which has ended had no input. `sources` are its sources."""
    where = f" from {_listed(sources, 'or')}" if sources else ""
    return Silence(Cause.NO_INPUT, f"there was no new data to read{where}")


def _before_state(figures: Figures, emission: Emission | None) -> Silence:
    """Returns the reason if the input has not changed the state."""
    quiet, last = figures.quiet, figures.last
    if emission is not None and any(step.release is WaitsFor.FIRST for step in emission.steps):
        return Silence(
            Cause.LIMIT, "its LIMIT is reached: it emits only the first rows over the whole life of the query"
        )
    if quiet.late_rows and last is not None:
        watermark, newest = _shown(moment(last.watermark)), _shown(moment(figures.newest_event))
        what = "those that reached its state were late: they are behind the watermark"
        return Silence(Cause.LATE, f"{_rows_read(quiet)}, but {what}, {watermark}; the newest event time was {newest}")
    operators = last.state.operators if last is not None and last.state is not None else ()
    if any(name.startswith("dedupe") for name in operators):
        return Silence(Cause.DUPLICATES, f"{_rows_read(quiet)}, but all are duplicates or were removed by a condition")
    return Silence(
        Cause.FILTERED,
        f"{_rows_read(quiet)}, but conditions or joins removed all of them before they reached its state",
    )


def _in_state(figures: Figures, emission: Emission | None) -> Silence:
    """Returns the reason if the state contains rows and holds them back."""
    quiet = figures.quiet
    steps = emission.steps if emission is not None else ()
    timed = next((step for step in steps if step.release in TIMED and step.release is not WaitsFor.UNMATCHED), None)
    if emission is not None and timed is not None:
        if quiet.removed_rows:
            what = "groups were completed, but a condition after the aggregation removed all of their rows"
            return Silence(Cause.FILTERED, what)
        return _behind_watermark(figures, emission, timed)
    if any(step.release in (WaitsFor.MATCH, WaitsFor.UNMATCHED) for step in steps):
        idle = _idle(quiet)
        if idle:
            what = (
                f"{_have_sent(idle)} no rows for {_idle_span(quiet)}, so there is nothing to match new rows of the "
                "other side"
            )
            return Silence(Cause.IDLE_SOURCE, f"{_rows_read(quiet)}, and wait for a match: {what}")
        if any(step.release is WaitsFor.UNMATCHED for step in steps):
            watermark = moment(figures.last.watermark if figures.last else None)
            now = f"which is at {_shown(watermark)}" if watermark else "which does not exist yet"
            what = "rows without a match are emitted once the watermark rules out a match"
            return Silence(Cause.WATERMARK, f"{_rows_read(quiet)}, and {what}, {now}")
        return Silence(Cause.NO_MATCH, f"{_rows_read(quiet)}, but no row has a match on the other side of the join")
    if any(step.release in (WaitsFor.CHANGE, WaitsFor.WHOLE) for step in steps):
        return Silence(Cause.FILTERED, f"{_rows_read(quiet)}, but a condition after the aggregation removed all groups")
    return Silence(Cause.UNKNOWN, f"{_rows_read(quiet)} and are kept in its state; what they wait for is unknown")


def _behind_watermark(figures: Figures, emission: Emission, step: Step) -> Silence:
    """Returns the reason if the watermark has not advanced far enough."""
    watermark = moment(figures.last.watermark if figures.last else None)
    now = f"the watermark is at {_shown(watermark)}" if watermark else "there is no watermark yet"
    # an idle source holds back only the lowest of several watermarks
    idle = _idle(figures.quiet) if len(emission.delays) > 1 and not emission.highest else ()
    end = first_end(step, figures, watermark)
    goal = _goal(step, end, is_certain=not figures.quiet.has_earlier_rows)
    if idle:
        return Silence(
            Cause.IDLE_SOURCE,
            f"{now} and {goal}; the lowest of {len(emission.delays)} watermarks counts, and {_have_sent(idle)} no "
            f"rows for {_idle_span(figures.quiet)}: {_needed_events(end, emission)}",
        )
    holders = [name for name, rows in figures.quiet.source_rows if rows != 0]
    holds = f", held back by {_listed(holders, 'and')}" if holders else ""
    text = f"{now}{holds if watermark else ''}, and {goal}; {_needed_events(end, emission)}"
    return Silence(Cause.WATERMARK, text, _due_event(step, end, figures, emission))


def _goal(step: Step, end: datetime | None, *, is_certain: bool) -> str:
    what = {WaitsFor.WINDOW: "the first window", WaitsFor.SESSION: "the latest session"}.get(
        step.release, "the first group"
    )
    if end is None:
        return (
            f"{what} ends after that" if is_certain else "its state has rows of earlier runs, whose times are unknown"
        )
    if not is_certain:
        return f"{what} ends at {_shown(end)} or later"
    return f"{what} {'ends at' if step.release is not WaitsFor.TIME else 'is of'} {_shown(end)}"


def _needed_events(end: datetime | None, emission: Emission) -> str:
    """Returns the events that release the first group, one for each watermark."""
    if end is None or not emission.delays or any(delay.span is None for delay in emission.delays):
        return "newer events must arrive to advance it past that"
    needed = [_needed_time(end, delay) for delay in emission.delays]
    if len(needed) == 1:
        return f"an event with the time {needed[0]} or later must arrive to advance it past that"
    each = [
        f"with the time {time} or later for `{delay.column}`"
        for time, delay in zip(needed, emission.delays, strict=True)
    ]
    if len(set(each)) == 1:
        which = f"{'one' if emission.highest else 'each'} of the {len(each)} watermarks"
        return f"events {each[0]} must arrive for {which} to advance it past that"
    return f"events {(' or ' if emission.highest else ' and ').join(each)} must arrive to advance it past that"


def _due_event(step: Step, end: datetime | None, figures: Figures, emission: Emission) -> str | None:
    """Returns the event time that releases the first window. None if several watermarks count, or if `end` is not that
    of the window of a known row: the end of a session moves with each of its events.
    """
    oldest, call = moment(figures.quiet.oldest_event), read_window(step.time or "")
    spans = [delay.span for delay in emission.delays]
    is_known = step.release is WaitsFor.WINDOW and not figures.quiet.has_earlier_rows
    if end is None or not is_known or oldest is None or call is None or len(spans) != 1 or spans[0] is None:
        return None
    with suppress(OverflowError):
        return utc_text(end + spans[0]) if _window_end(call, oldest) == end else None
    return None


def _needed_time(end: datetime, delay: Delay) -> str:
    try:
        return _shown(end + (delay.span or timedelta(0)))
    except OverflowError:
        return _shown(None)


def first_end(step: Step, figures: Figures, watermark: datetime | None) -> datetime | None:
    """Returns when the first group ends that the query can still emit, None if unknown.

    Its rows are not older than the oldest event since the last output, nor behind the watermark; of rows from earlier
    runs only the latter is known, and then it is the first group that can end. For sessions it is the
    session of the newest event: when Spark emits it, it has emitted all others.
    """
    oldest = None if figures.quiet.has_earlier_rows else moment(figures.quiet.oldest_event)
    newest = moment(figures.newest_event)
    call = read_window(step.time or "")
    try:
        if step.release is WaitsFor.SESSION:
            return newest + call.length if newest and call is not None and call.length else None
        known = [time for time in (oldest, watermark) if time is not None]
        if not known:
            return None
        if step.release is WaitsFor.TIME:
            return max(known)
        return _window_end(call, max(known)) if call is not None else None
    except OverflowError:
        return None


def _window_end(call: TimeWindow, time: datetime) -> datetime | None:
    """Returns the first end of a window after `time`. A window does not contain the event at its end."""
    if call.length is None:
        return None
    slide = call.slide or call.length
    # windows end at EPOCH + offset + length + n * slide
    return time + slide - (time - EPOCH - call.offset - call.length) % slide


def _idle(quiet: SilentSpan) -> tuple[str, ...]:
    """Returns the sources without rows in `QUIET_BATCHES` batches with rows of others."""
    return tuple(name for name, batches in quiet.idle_batches if batches >= _min_idle(quiet))


def _min_idle(quiet: SilentSpan) -> int:
    """Returns `QUIET_BATCHES`, or less for a query that has ended earlier."""
    return min(QUIET_BATCHES, quiet.batches)


def _idle_span(quiet: SilentSpan) -> str:
    return _batches(min(batches for _, batches in quiet.idle_batches if batches >= _min_idle(quiet)))


def _rows_read(quiet: SilentSpan) -> str:
    if quiet.rows_in == 1:
        return f"1 row was read in {_batches(quiet.batches)}"
    rows = "rows" if quiet.rows_in is None else f"{quiet.rows_in:,} rows"
    return f"{rows} were read in {_batches(quiet.batches)}"


def _batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count:,} batches"


def _have_sent(names: tuple[str, ...]) -> str:
    return f"{_listed(names, 'and')} {'has' if len(names) == 1 else 'have'} sent"


def _listed(names: list[str] | tuple[str, ...], word: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def _shown(time: datetime | None) -> str:
    """Returns `2024-01-01 12:00` in UTC, with seconds and fractions if they are not zero."""
    if time is None:
        return "a time outside the calendar"
    precision = "milliseconds" if time.microsecond else "seconds" if time.second else "minutes"
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(" ", precision)
