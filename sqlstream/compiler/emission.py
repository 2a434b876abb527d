"""When a query emits its rows: what each of its stateful operators waits for, an example with times, and how it reads
each model.

These are the rules of Spark 4.3's micro-batches. After a batch the watermark is the latest event time minus the delay,
in whole milliseconds; the next batch uses it (WatermarkTracker). In append mode a group is emitted and removed from the
state in the first batch whose watermark is at or after the end of its window or session, or its event time
(WatermarkSupport.watermarkExpression compares with `<=`). With several watermarks the lowest is used, or the highest if
`spark.sql.streaming.multipleWatermarkPolicy` is `max`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.nodes import (
    Aggregate,
    CteReference,
    Deduplicate,
    EventTimeWatermark,
    Filter,
    Join,
    Key,
    LateralJoin,
    Limit,
    Node,
    Opaque,
    Projection,
    SetOperation,
    View,
    With,
    kept_state,
)
from sqlstream.compiler.rules.query import is_stream_join
from sqlstream.compiler.sql.clauses import split_at_commas
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.intervals import IntervalError, parse_interval
from sqlstream.compiler.sql.tokens import TokenKind, Tokens, tokenize

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
"""The start of the examples."""

MILLISECOND = timedelta(milliseconds=1)

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
NOT_FOLLOWED = "when it emits rows cannot be determined"
IDLE_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class WaitsFor(StrEnum):
    """What a row waits for."""

    ROW = "row"
    CHANGE = "change"
    WHOLE = "whole"
    WINDOW = "window"
    SESSION = "session"
    TIME = "time"
    MATCH = "match"
    UNMATCHED = "unmatched"
    FIRST = "first"
    KEY = "key"
    RUN = "run"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Delay:
    """One watermark of a query: its column, its delay as written and as a time, and where it is declared.

    `span` is None if the delay has an unknown form.
    """

    column: str
    written: str
    span: timedelta | None
    where: Where


@dataclass(frozen=True)
class Example:
    """Example rows, and the events after which they are emitted.

    They are the rows of a window from `start` to `end`, of a session whose last event is at `start`, or of the event
    time `start`. They are emitted in the batch after the watermark has reached `end`: when an event at `events[i]` or
    later has arrived for the i-th of the query's watermarks.
    """

    start: datetime
    end: datetime
    events: tuple[datetime, ...]


@dataclass(frozen=True)
class Step:
    """One operator that delays rows, or the whole query if no operator does (`operator` is empty).

    `time` is the key that is compared with the watermark; `unknown` is the reason if there is no example or no rule.
    """

    release: WaitsFor
    operator: str
    where: Where
    time: str | None = None
    example: Example | None = None
    unknown: str | None = None


@dataclass(frozen=True)
class Condition:
    """A condition behind a watermark, or those of its parts that read the event time `column`.

    Spark checks the event time after the watermark, so rows that such parts remove advance it. It checks other parts
    (`column` is None) directly behind a watermark before it. `beside` means that the condition has parts of both kinds.
    """

    where: Where
    column: str | None
    beside: bool = False


@dataclass(frozen=True)
class Emission:
    """When a query emits its rows: its operators from the sources to the sink, and its watermarks.

    `highest`: the highest watermark is used instead of the lowest. `idle_batches`: Spark runs a batch without new rows
    after the watermark has advanced. `filters` are the conditions behind a watermark.
    """

    steps: tuple[Step, ...]
    delays: tuple[Delay, ...]
    highest: bool
    idle_batches: bool
    filters: tuple[Condition, ...] = ()


def explain_emission(model: CompiledModel, node: Node, settings: Mapping[str, object]) -> Emission:
    """Returns when the query of terminal `model` with the operators `node` emits its rows.

    `settings` are the target's Spark settings.
    """
    if not model.streaming:
        return Emission((Step(WaitsFor.RUN, "", node.where),), (), highest=False, idle_batches=False)
    nodes = _executed(node)
    watermarks = [item for item in nodes if isinstance(item, EventTimeWatermark) and item.streaming]
    written = ((node, node.event_time.delay) for node in watermarks)
    delays = tuple(
        dict.fromkeys(Delay(node.column, delay, _interval_time(delay), node.where) for node, delay in written)
    )
    mode = model.config.output_mode
    steps = [step for item in nodes if item.streaming for step in _steps(item, mode, delays)]
    highest = str(settings.get(POLICY, "min")).lower() == "max"
    idle_batches = str(settings.get(IDLE_BATCHES, "true")).lower() != "false"
    filters = tuple(dict.fromkeys(found for item in nodes if item.streaming for found in _conditions(item)))
    return Emission(tuple(steps or [Step(WaitsFor.ROW, "", node.where)]), delays, highest, idle_batches, filters)


def _conditions(node: Node) -> Iterator[Condition]:
    if isinstance(node, Filter | Join):
        yield from (Condition(time.where, time.column) for time in node.times)
    if isinstance(node, Filter) and node.has_others and _is_first(node):
        yield Condition(node.where, None, beside=bool(node.times))


def _is_first(condition: Filter) -> bool:
    """Returns whether Spark can move a condition below a watermark."""
    below = condition.children[0]
    while isinstance(below, Filter | Projection | View | CteReference | With) and below.children:
        below = below.children[0]
    return isinstance(below, EventTimeWatermark) and below.streaming


def _executed(node: Node) -> list[Node]:
    """Returns the operators that run, once each, from the sources to the sink, without unused CTEs."""
    found: dict[int, Node] = {}
    waiting = [(node, False)]
    while waiting:
        item, is_open = waiting.pop()
        if is_open:
            found[id(item)] = item
        elif id(item) not in found:
            children = item.children[:1] if isinstance(item, With) else item.children
            waiting += [(item, True), *((child, False) for child in reversed(children))]
    return list(found.values())


def _steps(node: Node, mode: str, delays: tuple[Delay, ...]) -> Iterator[Step]:
    if isinstance(node, Aggregate):
        yield _aggregation(node, mode, delays)
    elif isinstance(node, Deduplicate):
        yield Step(WaitsFor.KEY, f"deduplicate by {', '.join(node.keys)}", node.where)
    elif is_stream_join(node):
        yield from _join(node)
    elif isinstance(node, SetOperation) and node.kind != "union":
        yield Step(WaitsFor.UNKNOWN, node.kind.upper(), node.where, unknown=NOT_FOLLOWED)
    elif isinstance(node, LateralJoin) and node.domain != ():
        yield Step(WaitsFor.UNKNOWN, "LATERAL", node.where, unknown=NOT_FOLLOWED)
    elif isinstance(node, Limit) and mode == "append":
        yield Step(WaitsFor.FIRST, "LIMIT", node.where)
    elif isinstance(node, Opaque):
        why = "when this part of the query emits rows cannot be determined"
        yield Step(WaitsFor.UNKNOWN, "", node.where, unknown=why)


def _join(node: Join) -> Iterator[Step]:
    operator = f"{node.kind.upper()} JOIN"
    yield Step(WaitsFor.MATCH, operator, node.where)
    if node.kind in ("left", "right", "full"):
        reason = "the time bound of the join condition cannot be computed"
        yield Step(WaitsFor.UNMATCHED, operator, node.where, unknown=reason)


def _aggregation(node: Aggregate, mode: str, delays: tuple[Delay, ...]) -> Step:
    written = ", ".join(key.text for key in node.keys)
    operator = f"GROUP BY {written}" if written else "an aggregate of all rows"
    operator = {"distinct": "SELECT DISTINCT", "pivot": "PIVOT"}.get(node.kind, operator)
    if mode != "append":
        return Step(WaitsFor.CHANGE if mode == "update" else WaitsFor.WHOLE, operator, node.where)
    times = [key for key in node.keys if key.is_column and key.column.event_time]
    if len(times) != 1:
        reason = "several of its keys have a watermark" if times else "the key with the watermark is unknown"
        return Step(WaitsFor.UNKNOWN, operator, node.where, unknown=f"{reason} here")
    return _timed(node, operator, times[0], delays)


def _timed(node: Aggregate, operator: str, key: Key, delays: tuple[Delay, ...]) -> Step:
    # a window from upstream is a plain name here
    time = key.text if read_window(key.text) is not None else key.column.window or key.text
    call = read_window(time)
    release = WaitsFor.TIME  # also of window_time(), which returns a time of the window
    if call is not None:
        release = WaitsFor.SESSION if call.is_session else WaitsFor.WINDOW
    example, unknown = None, _obstacle(node, key, call, delays)
    if unknown is None:
        start, end = _bounds(call)
        example = Example(start, end, tuple(_up(end) + delay.span for delay in delays if delay.span is not None))
    return Step(release, operator, node.where, time, example, unknown)


def _obstacle(node: Aggregate, key: Key, call: TimeWindow | None, delays: tuple[Delay, ...]) -> str | None:
    """Returns why no example can be computed; None if one can."""
    if any(delay.span is None for delay in delays) or not delays:
        return "the delay of a watermark is in an unknown form"
    if any(map(is_stream_join, _executed(node))):
        return "the upstream join holds back the watermark by a time that cannot be computed"
    if call is None and key.column.window:
        return "the length of its windows is unknown"
    if call is not None and call.length is None:
        return "the length of its windows is not a simple interval"
    return None


def _bounds(call: TimeWindow | None) -> tuple[datetime, datetime]:
    """Returns the start and end of the example's window, the last event and end of its session, or one moment twice."""
    if call is None or call.length is None:
        return NOON, NOON
    if call.is_session:
        return NOON, NOON + call.length
    start = NOON - (NOON - datetime.fromtimestamp(0, UTC) - call.offset) % (call.slide or call.length)
    return start, start + call.length


def _up(moment: datetime) -> datetime:
    """Returns `moment` rounded up to milliseconds, the precision of watermarks."""
    return moment + (timedelta(microseconds=-moment.microsecond) % MILLISECOND)


@dataclass(frozen=True)
class ModelRead:
    """A model that a query reads: as its stored output, or by computing it. `queries` counts the queries that read it
    in the same way. `state` names the operators of the model that keep state: each query that computes it has its own.
    """

    model: str
    is_stored: bool
    queries: int
    state: tuple[str, ...] = ()


def explain_reads(compiled: CompiledProject, model: CompiledModel, tree: Node) -> tuple[ModelRead, ...]:
    """Returns every model that the query of `model` reads, directly or through others. `tree` are its operators."""
    upstream = compiled.upstream(model.unique_id)
    queries = [item for item in compiled.models.values() if item.output is not None]
    parts = {item.unique_id: {item.unique_id, *compiled.upstream(item.unique_id)} for item in queries}
    state: dict[str, dict[str, None]] = {}
    for operator in tree.walk():
        kept = kept_state(operator)
        if kept is not None:
            state.setdefault(operator.where.model, {})[kept] = None
    found = []
    for node in (node for node in (*compiled.models, *compiled.stored) if node in upstream):
        count = sum(node in part for part in parts.values())
        if node in compiled.stored:
            found.append(ModelRead(compiled.stored[node].name, is_stored=True, queries=count))
        else:
            own = tuple(state.get(node, ()))
            found.append(ModelRead(compiled.models[node].name, is_stored=False, queries=count, state=own))
    return tuple(found)


@dataclass(frozen=True)
class TimeWindow:
    """A call of a window function. `length` is the length of a window or the gap of a session; None if it is not plain.

    Windows start every `slide` (None: at the end of the previous window), counted from 1970-01-01 00:00 UTC plus
    `offset` (org.apache.spark.sql.catalyst.expressions.TimeWindow).
    """

    is_session: bool
    length: timedelta | None
    slide: timedelta | None = None
    offset: timedelta = timedelta(0)


def read_window(text: str) -> TimeWindow | None:
    """Returns a call of a window function; None for any other expression.

    `text` is a grouping key in SQL, such as `window(event_time, '10 minutes', '5 minutes')`.
    """
    tokens = tokenize(text)
    name = tokens[0].name.lower() if tokens else ""
    if name not in ("window", "session_window") or len(tokens) < 3 or tokens[1].key != "(":
        return None
    spans = [_span(argument) for argument in list(split_at_commas(tokens[2:-1]))[1:]]
    if not spans or any(span is None for span in spans):
        return TimeWindow(name == "session_window", None)
    slide = spans[1] if len(spans) > 1 else None
    offset = (spans[2] if len(spans) > 2 else None) or timedelta(0)
    return TimeWindow(name == "session_window", spans[0], slide, offset)


def _span(argument: Tokens) -> timedelta | None:
    """Returns the interval in a text such as `'10 minutes'`; None for other expressions, which a gap can be."""
    is_text = len(argument) == 1 and argument[0].kind is TokenKind.STRING
    return _interval_time(argument[0].text[1:-1]) if is_text else None


def _interval_time(text: str) -> timedelta | None:
    """Returns the time of an interval; None if it has none, or cannot be parsed."""
    try:
        return parse_interval(text).span
    except IntervalError:
        return None
