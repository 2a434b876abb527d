"""The types of functions on dates and times that depend on their arguments."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.typer import Handler, Typer
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    DATE,
    DATETIMES,
    INT,
    SPANS,
    TIMESTAMP,
    TINYINT,
    kind,
)
from sqlstream.project.types.types import DataType, Decimal, Field, Struct

_SECONDS = Decimal(8, 6)

_YEARS = frozenset({"y", "year", "years", "yr", "yrs"})
_DAYS = frozenset({"d", "day", "days"})
_SMALL = frozenset(
    {"mon", "mons", "month", "months", "h", "hour", "hours", "hr", "hrs", "m", "min", "mins", "minute", "minutes"}
)
_SECOND_NAMES = frozenset({"s", "sec", "second", "seconds", "secs"})
_OF_DATES = frozenset(
    {"yearofweek", "qtr", "quarter", "w", "week", "weeks", "dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy"}
)
"""The names of fields (`DatePart.parseExtractField` and `ExtractIntervalPart.parseExtractField`)."""


def _extracted(typer: Typer, node: exp.Expr) -> DataType | None:
    return _field(node.this.name.lower(), typer.of(node.args.get("expression")))


def _date_part(typer: Typer, node: exp.Expr) -> DataType | None:
    if len(node.expressions) != len(("field", "source")) or not isinstance(node.expressions[0], exp.Literal):
        return None
    return _field(node.expressions[0].name.lower(), typer.of(node.expressions[1]))


def _field(name: str, source: DataType | None) -> DataType | None:
    written = kind(source)
    if written not in SPANS and written not in DATETIMES and written != "string":
        return None
    if name in _SECOND_NAMES:
        return _SECONDS
    if name in _SMALL:
        return TINYINT if written in SPANS else INT
    return INT if name in _YEARS or name in _DAYS or name in _OF_DATES else None


def _added_days(_typer: Typer, _node: exp.Expr) -> DataType:
    return DATE


def _added_units(typer: Typer, node: exp.Expr) -> DataType | None:
    return _moment(typer.of(node.this))


def _moment(type_: DataType | None) -> DataType | None:
    """What a timestamp is to functions that take one: itself, and TIMESTAMP for a date or text."""
    name = kind(type_)
    if name == "timestamp_ntz":
        return type_
    return TIMESTAMP if name in ("timestamp", "date", "string") else None


def _in_zone(typer: Typer, node: exp.Expr) -> DataType | None:
    """from_utc_timestamp and to_utc_timestamp; `x AT TIME ZONE y` is no SQL of Spark's."""
    return TIMESTAMP if typer.name(node) else None


def _difference(_typer: Typer, node: exp.Expr) -> DataType:
    return INT if node.args.get("unit") is None else BIGINT


def _window(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.expressions[0]) if node.expressions else None
    bound = type_.fields[0].type if isinstance(type_, Struct) and type_.fields else _moment(type_)
    return None if bound is None else Struct((Field("start", bound), Field("end", bound)))


def _window_time(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.expressions[0]) if node.expressions else None
    return type_.fields[0].type if isinstance(type_, Struct) and type_.fields else None


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.Extract: _extracted,
    exp.TsOrDsAdd: _added_days,
    exp.TimestampAdd: _added_units,
    exp.DateDiff: _difference,
    exp.AtTimeZone: _in_zone,
    exp.FromTimeZone: _in_zone,
}

BY_NAME: dict[str, Handler] = {
    "date_part": _date_part,
    "datepart": _date_part,
    "window": _window,
    "session_window": _window,
    "window_time": _window_time,
}
