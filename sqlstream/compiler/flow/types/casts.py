"""The types that casts and typed literals name, from sqlglot's reading of them."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.literals import decimal_literal, interval_unit
from sqlstream.compiler.flow.types.typer import Handler, Typer
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    BOOLEAN,
    CALENDAR_INTERVAL,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVALS,
    MOST_DIGITS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
)
from sqlstream.project.types.types import Array, DataType, Decimal, Field, Map, Primitive, Struct

_DEFAULT_TIME_DIGITS = "6"

_PLAIN: dict[object, DataType] = {
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DType.VARIANT: VARIANT,
    exp.DType.INTERVAL: CALENDAR_INTERVAL,
}


def _cast(typer: Typer, node: exp.Expr) -> DataType | None:
    value, target = node.this, node.args["to"]
    if isinstance(value, exp.Literal) and value.is_string and not value.meta and target.this == exp.DType.DECIMAL:
        return decimal_literal(value.name)  # 1.5BD
    return named_type(target, typer.sql)


def named_type(node: object, sql: str) -> DataType | None:
    """Returns the type that a node of sqlglot's names. CHAR and VARCHAR are STRING to a cast."""
    if not isinstance(node, exp.DataType):
        return None
    if isinstance(node.this, exp.Interval):
        span = interval_unit(node.this.args.get("unit"))
        return None if span is None else INTERVALS.get(span)
    if node.this == exp.DType.TIMESTAMPTZ:  # sqlglot forgets WITHOUT TIME ZONE
        return None if "without" in sql.lower() else TIMESTAMP
    found = _PLAIN.get(node.this)
    return found if found is not None else _with_parts(node, sql)


def _with_parts(node: exp.DataType, sql: str) -> DataType | None:
    parts = node.expressions
    if node.this == exp.DType.TEXT:
        return None if node.args.get("collate") else STRING
    if node.this == exp.DType.DECIMAL:
        return _decimal([part.name for part in parts])
    if node.this == exp.DType.TIME:
        return Primitive("time", (parts[0].name if parts else _DEFAULT_TIME_DIGITS,))
    if node.this == exp.DType.STRUCT:
        return _struct(parts, sql)
    inner = [named_type(part, sql) for part in parts]
    if node.this == exp.DType.ARRAY and len(inner) == 1:
        return None if inner[0] is None else Array(inner[0])
    if node.this == exp.DType.MAP and len(inner) == len(("key", "value")):
        return None if inner[0] is None or inner[1] is None else Map(inner[0], inner[1])
    return None


def _decimal(sizes: list[str]) -> Decimal | None:
    if not all(size.isdecimal() and len(size) <= len("38") for size in sizes) or len(sizes) > len(
        ("precision", "scale")
    ):
        return None
    found = Decimal(*map(int, sizes))
    return found if found.scale <= found.precision <= MOST_DIGITS else None


def _struct(parts: list[exp.Expr], sql: str) -> Struct | None:
    fields = []
    for part in parts:
        type_ = named_type(part.args.get("kind"), sql)
        if type_ is None or not isinstance(part, exp.ColumnDef):
            return None
        fields.append(Field(part.name, type_))
    return Struct(tuple(fields))


BY_CLASS: dict[type[exp.Expr], Handler] = {exp.Cast: _cast, exp.TryCast: _cast}
