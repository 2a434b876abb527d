"""The types of literals: numbers by their digits, intervals by their units."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.typer import Handler, Typer
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVALS,
    MOST_DIGITS,
    STRING,
    UNITS,
    VOID,
)
from sqlstream.project.types.types import DataType, Decimal

_LARGEST_INT = 2**31 - 1
_LARGEST_BIGINT = 2**63 - 1


def number_type(text: str, *, negative: bool = False) -> DataType | None:
    """Returns the type of a number without a suffix: `7` is an INT, `1.50` a DECIMAL(3,2), `1e0` a DOUBLE."""
    if text.isdecimal():
        return _whole(text, negative)
    if "e" in text.lower():
        return DOUBLE
    return decimal_literal(text)


def _whole(text: str, negative: bool) -> DataType | None:
    digits = text.lstrip("0")
    if len(digits) > MOST_DIGITS:
        return None
    value = int(digits or "0") - negative
    if value <= _LARGEST_INT:
        return INT
    return BIGINT if value <= _LARGEST_BIGINT else Decimal(len(digits), 0)


def decimal_literal(text: str) -> Decimal | None:
    """Returns the decimal that just holds a number without an exponent, as `BigDecimal` counts its digits."""
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdecimal():
        return None
    digits = (whole + fraction).lstrip("0")
    precision = max(len(digits), len(fraction), 1)
    return None if precision > MOST_DIGITS else Decimal(precision, len(fraction))


def _literal(_typer: Typer, node: exp.Expr) -> DataType | None:
    return STRING if node.args["is_string"] else number_type(node.name)


def _hexadecimal(typer: Typer, node: exp.Expr) -> DataType | None:
    """X'1F' is binary; 0x1F, which sqlglot reads alike, is no literal of Spark's."""
    start = node.meta.get("start")
    return BINARY if start is not None and typer.sql[start] in "xX" else None


def interval_unit(node: object) -> tuple[str, int, int] | None:
    """Returns the span of an interval's unit: `DAY`, `DAYS` or `DAY TO SECOND`."""
    if isinstance(node, exp.IntervalSpan):
        first, last = (UNITS.get(part.name.lower()) for part in (node.this, node.args["expression"]))
        return None if first is None or last is None or first[0] != last[0] else (first[0], first[1], last[1])
    return _span(node.name) if isinstance(node, exp.Var) else None


def _span(unit: str) -> tuple[str, int, int] | None:
    unit = unit.lower()
    found = UNITS.get(unit) or UNITS.get(unit.removesuffix("s"))
    return None if found is None else (found[0], found[1], found[1])


def _interval(_typer: Typer, node: exp.Expr) -> DataType | None:
    unit = node.args.get("unit")
    if unit is not None:
        span = interval_unit(unit)
        return None if span is None else INTERVALS.get(span)
    return _several_units(node.this.name) if isinstance(node.this, exp.Literal) else None


def _several_units(text: str) -> DataType | None:
    """The type of INTERVAL '1 day 2 hours': from its largest unit to its smallest."""
    spans = [_span(word) for word in text.split() if word.isalpha() and word.lower() != "interval"]
    families = {span[0] for span in spans if span is not None}
    if len(families) != 1 or None in spans:
        return None
    places = [span[1] for span in spans if span is not None]
    return INTERVALS.get((families.pop(), min(places), max(places)))


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.Literal: _literal,
    exp.RawString: lambda _typer, _node: STRING,
    exp.HexString: _hexadecimal,
    exp.Boolean: lambda _typer, _node: BOOLEAN,
    exp.Null: lambda _typer, _node: VOID,
    exp.Interval: _interval,
}
