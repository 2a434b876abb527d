"""Intervals, triggers and retries: when a query runs its batches, and when it restarts after a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Literal

from pydantic_core import PydanticCustomError

from sqlstream.project.wording import did_you_mean, given, quoted

TriggerKind = Literal["default", "interval", "available_now", "once", "continuous", "real_time"]

_UNIT_SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}
_UNITS = "|".join(_UNIT_SECONDS)
_PAIR = re.compile(rf"(\d+(?:\.\d+)?)\s+({_UNITS})s?", re.IGNORECASE | re.ASCII)
_INTERVAL = re.compile(rf"\s*(?:interval\s+)?({_PAIR.pattern}(?:\s+{_PAIR.pattern})*)\s*", re.IGNORECASE | re.ASCII)

LONGEST_INTERVAL = 200
"""The most characters of an interval that are read."""

OUTLASTS = 15
"""The restarts of a query that never ends after lost connections, unless its model sets `retries`: with the default
delays five to ten minutes, in which a server can restart.
"""


@dataclass(frozen=True)
class TriggerFacts:
    """All facts about one kind of trigger. The defaults are those of a trigger of micro-batches."""

    argument: str
    """The argument of Spark's `DataStreamWriter.trigger`; empty for Spark's default."""
    written: Literal["word", "interval", "mapping"]
    """How users write it: `once`, `10 seconds` or `{continuous: 1 second}`. Only a word has no interval."""
    next_batch: str = "immediately"
    """When the next batch follows, with `{interval}`."""

    ends: bool = False
    """Whether a query ends by itself."""
    has_micro_batches: bool = True
    """Whether Spark plans batches of new rows. Without them it counts no rows, or only after minutes; sinks that take
    batches do not work, and tasks last as long as the query, or for minutes.
    """
    has_epochs: bool = False
    """Whether there are epochs in place of batches: Spark reports and counts nothing, and a query can stop at any time,
    because Spark reads again what follows the last epoch.
    """
    has_idle_batches: bool = True
    """Whether a batch without new rows can follow, which emits rows that were waiting for the watermark."""
    shortest_seconds: float = 0.0
    """The shortest interval with which Spark starts a query."""
    code: str = ""
    """The code of findings about what Spark does not support under it."""
    words: str = ""
    """The kind in a sentence, before "trigger"."""


TRIGGERS: dict[TriggerKind, TriggerFacts] = {
    "default": TriggerFacts("", "word"),
    "interval": TriggerFacts("processingTime", "interval", "at the next trigger ({interval})"),
    "available_now": TriggerFacts("availableNow", "word", "in the same run", ends=True),
    "once": TriggerFacts(
        "once",
        "word",
        "in the next run that finds new rows, because this trigger has one batch per run",
        ends=True,
        has_idle_batches=False,
    ),
    "continuous": TriggerFacts(
        "continuous",
        "mapping",
        has_micro_batches=False,
        has_epochs=True,
        code="continuous-trigger",
        words="continuous",
    ),
    "real_time": TriggerFacts(
        "realTime",
        "mapping",
        has_micro_batches=False,
        # a batch takes the whole interval; this is the default of spark.sql.streaming.realTimeMode.minBatchDuration
        shortest_seconds=5.0,
        code="real-time-trigger",
        words="real-time",
    ),
}
"""Each kind of trigger. What Spark refuses under some of them is in `compiler/rules/streams/triggers.py`, and which
formats it refuses in `project/formats/formats.py` (`refused_triggers`).
"""

ENDING = frozenset(kind for kind, facts in TRIGGERS.items() if facts.ends)
"""The kinds of triggers under which a query ends by itself."""
WORDS = {str(kind): kind for kind, facts in TRIGGERS.items() if facts.written == "word"}
MAPPED = {str(kind): kind for kind, facts in TRIGGERS.items() if facts.written == "mapping"}
"""The kinds that users write as a word, and those that they write as a mapping of the kind to an interval."""


@dataclass(frozen=True)
class Trigger:
    """When a query runs a batch. `interval` is a Spark interval for kinds that have one, else None. The kind `default`
    starts the next batch as soon as the last one has ended.
    """

    kind: TriggerKind = "default"
    interval: str | None = None

    @property
    def facts(self) -> TriggerFacts:
        """All facts about its kind."""
        return TRIGGERS[self.kind]

    @property
    def period_seconds(self) -> float | None:
        """The time from the start of one batch to that of the next, None if nothing sets one."""
        return interval_seconds(self.interval or "") if self.facts.written == "interval" else None

    def __str__(self) -> str:
        """Returns the trigger as a user writes it, such as `available_now`, `10 seconds` or `continuous 1 second`."""
        is_named = self.facts.written != "interval"
        return " ".join(word for word in (is_named and self.kind, self.interval) if word)


AVAILABLE_NOW = Trigger("available_now")
"""What `run --available-now` gives to every stream."""


def invalid(problem: str, fix: str, part: str | None = None, *, is_unknown: bool = False) -> PydanticCustomError:
    """Returns the error of a value: `problem` continues "`key` ...", `fix` is the replacement. In a value that is a
    mapping, `part` is the key with the error; `is_unknown`: the mapping has no such key.
    """
    context = {"problem": problem, "fix": fix, "part": part, "is_unknown": is_unknown}
    return PydanticCustomError("sqlstream", "{problem}", context)


def parse_interval(value: object, *, zero: bool = False) -> str:
    """Returns a Spark interval with single spaces and in lower case, such as `1 minute 30 seconds`.

    Raises: PydanticCustomError for other text, and for a length of 0 unless `zero` allows it.
    """
    match = _INTERVAL.fullmatch(value) if isinstance(value, str) and len(value) <= LONGEST_INTERVAL else None
    if match is None:
        fix = "use a number and a full unit name, for example `10 seconds` or `5 minutes`"
        raise invalid(f"cannot be {given(value)}", fix)
    pairs = _PAIR.findall(match[1])
    if not zero and all(float(number) == 0 for number, _ in pairs):
        raise invalid(f"cannot be {given(value)}", "use an interval greater than zero, for example `10 seconds`")
    fraction = next((number for number, unit in pairs if "." in number and unit.lower() != "second"), None)
    if fraction is not None:
        raise invalid(
            f"cannot be {given(value)}", "use whole numbers in smaller units; only seconds can have a fraction"
        )
    return " ".join(match[1].lower().split())


def interval_seconds(interval: str) -> float:
    """Returns the seconds of an interval from `parse_interval`."""
    return sum(float(number) * _UNIT_SECONDS[unit.lower()] for number, unit in _PAIR.findall(interval))


def parse_trigger(value: object) -> Trigger:
    """Returns the trigger in YAML or config(). Raises: PydanticCustomError with an example."""
    if isinstance(value, Trigger):
        return value
    if isinstance(value, dict):
        return _parse_mapping(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in WORDS:
        return Trigger(WORDS[word])
    if isinstance(value, str) and not any(letter.isdigit() for letter in value):
        raise invalid(f"cannot be {given(value)}", _fix_word(word))
    return Trigger("interval", parse_interval(value))


def _parse_mapping(value: dict[object, object]) -> Trigger:
    kind, interval = next(iter(value.items()), (None, None))
    if len(value) != 1 or kind not in MAPPED:
        keys = ", ".join(quoted(key) for key in value) or "nothing"
        raise invalid(
            f"cannot be a mapping of {keys}", "use `{continuous: 1 second}`, `{real_time: 5 minutes}` or `10 seconds`"
        )
    return Trigger(MAPPED[str(kind)], parse_interval(interval))


def _fix_word(word: str) -> str:
    close = did_you_mean(word, sorted(ENDING))
    return close if close.startswith("did") else "for example, use `10 seconds`, `available_now` or `once`"


@dataclass(frozen=True)
class Retries:
    """A failed query restarts up to `attempts` times, after `first_delay`, and then after twice as long each time, up
    to `longest_delay`.

    After `window` without a failure, the count starts again from zero. All but `attempts` are Spark intervals.
    """

    attempts: int = 3
    first_delay: str = "1 second"
    longest_delay: str = "1 minute"
    window: str = "10 minutes"

    def __str__(self) -> str:
        """Returns the number of attempts in short, as a user writes it."""
        return str(self.attempts)

    def delay_after(self, failures: int, chance: float) -> float:
        """Returns the seconds to wait after the `failures`-th failure in a row (from 1). `chance`, from 0 to 1, spreads
        queries that failed together over the second half of the delay.
        """
        longest = interval_seconds(self.longest_delay)
        whole = min(interval_seconds(self.first_delay) * 2.0 ** min(failures - 1, 64), longest)
        return whole * (1 + chance) / 2

    def resets_count_after(self, seconds: float) -> bool:
        """Returns whether a query that ran for `seconds` before it failed starts to count from zero."""
        return seconds >= interval_seconds(self.window)


KEYS = tuple(field.name for field in fields(Retries))


def parse_retries(value: object) -> Retries:
    """Returns the retries in YAML or config(): a number of attempts, or a mapping. Raises: PydanticCustomError with an
    example.
    """
    if isinstance(value, Retries):
        return value
    if isinstance(value, dict):
        return _parse_retries(value)
    return Retries(attempts=_parse_attempts(value))


def _parse_retries(value: dict[object, object]) -> Retries:
    unknown = next((key for key in value if key not in KEYS), None)
    if unknown is not None:
        raise invalid(f"has no key {quoted(str(unknown))}", f"its keys are {', '.join(map(quoted, KEYS))}")
    attempts = _parse_attempts(value["attempts"]) if "attempts" in value else Retries.attempts
    intervals = {str(key): parse_interval(item) for key, item in value.items() if key != "attempts"}
    retries = Retries(attempts, **intervals)
    if interval_seconds(retries.first_delay) > interval_seconds(retries.longest_delay):
        raise invalid(
            f"starts with a delay of {retries.first_delay}, which is longer than the longest one, "
            f"{retries.longest_delay}",
            "also set `longest_delay`, for example {first_delay: 10 seconds, longest_delay: 5 minutes}",
        )
    return retries


def _parse_attempts(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise invalid(
        f"cannot be {given(value)}", "set a number, for example `3`, or {attempts: 3, first_delay: 10 seconds}"
    )
