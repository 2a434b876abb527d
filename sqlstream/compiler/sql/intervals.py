"""Reads delays and lengths of time such as `1 hour 30 minutes`, and writes them as Spark's interval literals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from difflib import get_close_matches

_MONTHS = {"YEAR": 12, "MONTH": 1}
_MICROSECONDS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_UNITS = frozenset(unit + ending for unit in (*_MONTHS, *_MICROSECONDS) for ending in ("", "S"))
"""The units of Spark's interval literals. Its grammar also has nanoseconds, but it rejects their values."""

NEGATIVE = "a watermark's delay cannot be negative"
NO_DELAY = "use '0 seconds' for no delay"

_UNIT = re.compile(r"\s*([+-]?)\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s+([A-Za-z]+)(?=\s|$)")
_PREFIX = re.compile(r"\s*interval\s+", re.IGNORECASE)


class IntervalError(ValueError):
    """Spark would reject the interval. The message says why, and `fix` what to write instead."""

    def __init__(self, why: str, fix: str = "use for example '10 minutes' or '1 hour 30 minutes'") -> None:
        super().__init__(why)
        self.why = why
        self.fix = fix


@dataclass(frozen=True)
class Span:
    """A length of time, possibly negative: months, plus microseconds."""

    months: int
    microseconds: int

    @property
    def is_negative(self) -> bool:
        """Whether the length is less than zero, with 31 days for a month as in watermarks."""
        return self.months * 31 * _MICROSECONDS["DAY"] + self.microseconds < 0


@dataclass(frozen=True)
class Interval:
    """A length of time, zero or more: `units` are pairs such as `("10", "MINUTES")`, in the order written."""

    units: tuple[tuple[str, str], ...]

    @property
    def clause(self) -> str:
        """The interval as a Spark literal: `INTERVAL 1 HOUR 30 MINUTES`."""
        return " ".join(["INTERVAL", *(f"{value} {unit}" for value, unit in self.units)])

    @property
    def span(self) -> timedelta:
        """The length of the interval. A month has 31 days, as in Spark's watermarks (IntervalUtils.getDuration)."""
        total = _total(self.units)
        return timedelta(days=31 * total.months, microseconds=total.microseconds)


def parse_interval(text: str) -> Interval:
    """Returns the interval in a text such as `1 hour 30 minutes` or `interval 10 MINUTES`.

    Raises:
        IntervalError: the text is not an interval, is negative, or mixes months with days.
    """
    units: list[tuple[str, str]] = []
    for sign, value, unit in _read_units(text):
        if sign == "-":
            raise IntervalError(NEGATIVE, NO_DELAY)
        units.append((value, unit))
    if not units:
        raise IntervalError("the delay is empty")
    if 0 < sum(unit.removesuffix("S") in _MONTHS for _, unit in units) < len(units):
        raise IntervalError(
            "Spark does not allow years or months together with shorter units", "use days, as in '31 days'"
        )
    return Interval(tuple(units))


def read_span(text: str) -> Span | None:
    """Returns the result of `parse_span`, or None if Spark cannot read the text."""
    try:
        return parse_span(text)
    except IntervalError:
        return None


def parse_span(text: str) -> Span:
    """Returns the length in an argument of `window`, in which each unit may have a sign.

    The rules are those of `IntervalUtils.stringToInterval` of Spark 4.3.

    Raises:
        IntervalError: Spark cannot read the text.
    """
    units = [(sign + value, unit) for sign, value, unit in _read_units(text)]
    if not units:
        raise IntervalError("the length is empty")
    return _total(units)


def length_text(microseconds: int) -> str:
    """Returns a length of time in the longest unit up to hours that has a whole number of it: `90 minutes`."""
    units = ((unit, _MICROSECONDS[unit]) for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"))
    unit, length = next((unit, length) for unit, length in units if microseconds % length == 0)
    return f"{microseconds // length} {unit.lower()}s"


def _total(units: Iterable[tuple[str, str]]) -> Span:
    numbers = [(Decimal(value), unit.removesuffix("S")) for value, unit in units]
    months = sum(int(number) * _MONTHS.get(unit, 0) for number, unit in numbers)
    return Span(months, int(sum(number * _MICROSECONDS.get(unit, 0) for number, unit in numbers)))


def _read_units(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields the sign, number and unit (in capitals) of each part of `text`. Raises: IntervalError."""
    prefix = _PREFIX.match(text)
    position = prefix.end() if prefix else 0
    while text[position:].strip():
        match = _UNIT.match(text, position)
        if match is None:
            raise IntervalError(f"`{text.strip()}` is not a list of numbers with time units")
        sign, value, written = match.groups()
        yield sign, value, _known_unit(value, written)
        position = match.end()


def _known_unit(value: str, written: str) -> str:
    unit = written.upper()
    if unit not in _UNITS:
        near = get_close_matches(unit, sorted(_UNITS), n=1)
        fix = f"did you mean `{near[0].lower()}`?" if near else "use seconds, minutes, hours, days or weeks"
        raise IntervalError(f"`{written}` is not a unit for Spark intervals", fix)
    if "." in value and not unit.startswith("SECOND"):
        raise IntervalError("Spark allows fractions only for seconds", f"use a smaller unit for {value} {written}")
    return unit
