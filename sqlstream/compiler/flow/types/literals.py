"""The types of literals and casts: numbers by their digits, intervals by their units, casts by the type they name."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.typer import Handlers, TypeResolver
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    BOOLEAN,
    CALENDAR_INTERVAL,
    DOUBLE,
    INT,
    INTERVALS,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNITS,
    VOID,
    array_of,
    collated,
    map_of,
    struct_of,
)
from sqlstream.project.types.types import DataType, Decimal, Primitive

_LARGEST_INT = 2**31 - 1
_LARGEST_BIGINT = 2**63 - 1
_DEFAULT_TIME_DIGITS = "6"

_SAME_NAMES = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "binary", "date", "variant")
_PLAIN: dict[object, DataType] = {
    **{exp.DType[name.upper()]: Primitive(name) for name in _SAME_NAMES},
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DType.INTERVAL: CALENDAR_INTERVAL,
}
"""sqlglot's types without parts."""


def number_type(text: str, *, negative: bool = False) -> DataType | None:
    """Returns the type of a number without a suffix: `7` is an INT, `1.50` a DECIMAL(3,2), `1e0` a DOUBLE."""
    if text.isdecimal():
        return _whole(text, negative)
    return DOUBLE if "e" in text.lower() else decimal_literal(text)


def _whole(text: str, negative: bool) -> DataType | None:
    digits = text.lstrip("0")
    if len(digits) > MOST_DIGITS:
        return None
    value = int(digits or "0") - negative
    if value <= _LARGEST_INT:
        return INT
    return BIGINT if value <= _LARGEST_BIGINT else Decimal(len(digits), 0)


def decimal_literal(text: str) -> Decimal | None:
    """Returns the smallest decimal for a number without an exponent, with the digits that `BigDecimal` counts."""
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdecimal():
        return None
    digits = (whole + fraction).lstrip("0")
    precision = max(len(digits), len(fraction), 1)
    return None if precision > MOST_DIGITS else Decimal(precision, len(fraction))


def _literal(_typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return STRING if node.args["is_string"] else number_type(node.name)


def _hexadecimal(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns BINARY for X'1F'. sqlglot reads 0x1F the same way, which is no literal in Spark."""
    start = node.meta.get("start")
    return BINARY if start is not None and typer.sql[start] in "xX" else None


def _interval_type(unit: object) -> DataType | None:
    """Returns the type of an interval with this unit: `DAY`, `DAYS` or `DAY TO SECOND`."""
    if isinstance(unit, exp.IntervalSpan):
        return _widest([UNITS.get(part.name.lower()) for part in (unit.this, unit.args["expression"])])
    return _widest([_unit(unit.name)]) if isinstance(unit, exp.Var) else None


def _unit(name: str) -> tuple[str, int] | None:
    return UNITS.get(name.lower()) or UNITS.get(name.lower().removesuffix("s"))


def _widest(units: list[tuple[str, int] | None]) -> DataType | None:
    """Returns the interval type from the largest of `units` to the smallest; None if they have several families."""
    known = [unit for unit in units if unit is not None]
    places = [place for _, place in known]
    if len(known) != len(units) or len({family for family, _ in known}) != 1:
        return None
    return INTERVALS.get((known[0][0], min(places), max(places)))


def _interval(_typer: TypeResolver, node: exp.Expr) -> DataType | None:
    unit = node.args.get("unit")
    if unit is not None:
        return _interval_type(unit)
    words = node.this.name.split() if isinstance(node.this, exp.Literal) else []  # interval '1 day 2 hours'
    return _widest([_unit(word) for word in words if word.isalpha() and word.lower() != "interval"])


def _cast(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    value, target = node.this, node.args["to"]
    if isinstance(value, exp.Literal) and value.is_string and not value.meta and target.this == exp.DType.DECIMAL:
        return decimal_literal(value.name)  # 1.5BD
    return named_type(target, typer.sql)


def named_type(node: object, sql: str) -> DataType | None:
    """Returns the type that a sqlglot node names. In a cast, CHAR and VARCHAR are STRING."""
    if not isinstance(node, exp.DataType):
        return None
    if isinstance(node.this, exp.Interval):
        return _interval_type(node.this.args.get("unit"))
    if node.this == exp.DType.TIMESTAMPTZ:  # sqlglot drops WITHOUT TIME ZONE
        return None if "without" in sql.lower() else TIMESTAMP
    found = _PLAIN.get(node.this)
    return found if found is not None else _with_parts(node, sql)


def _with_parts(node: exp.DataType, sql: str) -> DataType | None:
    parts = node.expressions
    if node.this == exp.DType.TEXT:
        collation = node.args.get("collate")
        return STRING if collation is None else collated(collation.name)
    if node.this == exp.DType.DECIMAL:
        return _decimal([part.name for part in parts])
    if node.this == exp.DType.TIME:
        return Primitive("time", (parts[0].name if parts else _DEFAULT_TIME_DIGITS,))
    if node.this == exp.DType.STRUCT:
        return struct_of((part.name, named_type(part.args.get("kind"), sql)) for part in parts)
    inner = [named_type(part, sql) for part in parts]
    if node.this == exp.DType.ARRAY and len(inner) == 1:
        return array_of(*inner)
    return map_of(*inner) if node.this == exp.DType.MAP and len(inner) == len(("key", "value")) else None


def _decimal(sizes: list[str]) -> Decimal | None:
    is_readable = all(size.isdecimal() and len(size) <= len("38") for size in sizes)
    if not is_readable or len(sizes) > len(("precision", "scale")):
        return None
    found = Decimal(*map(int, sizes))
    return found if found.scale <= found.precision <= MOST_DIGITS else None


HANDLERS: Handlers = {
    exp.Literal: _literal,
    exp.RawString: lambda _typer, _node: STRING,
    exp.HexString: _hexadecimal,
    exp.Boolean: lambda _typer, _node: BOOLEAN,
    exp.Null: lambda _typer, _node: VOID,
    exp.Interval: _interval,
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
}
