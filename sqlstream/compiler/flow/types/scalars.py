"""The types of functions on numbers, text, times and JSON that no signature can describe."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.families import NUMBER, as_decimal, common_type_but_text, common_type_of, family
from sqlstream.compiler.flow.types.literals import Handler, Handlers, TypeResolver, argument
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    DATE,
    DATETIMES,
    DOUBLE,
    INT,
    MOST_DIGITS,
    RANKS,
    SPANS,
    TIMESTAMP,
    TINYINT,
    VARIANT,
    collated,
    kind,
    read_type,
    struct_of,
    text_of,
)
from sqlstream.project.types.parser import TypeSyntaxError, parse_schema
from sqlstream.project.types.types import Array, DataType, Decimal, Primitive, Struct


def _decode(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the common type of the results of decode(value, search, result, ..., default).

    If `value` has a type of another family, Spark casts the results too.
    """
    value, *pairs = node.expressions
    results = pairs[1::2] if len(pairs) % 2 == 0 else [*pairs[1::2], pairs[-1]]
    found = common_type_of(map(typer.of, results))
    return found if family(found) == family(typer.of(value)) else None


def _greatest(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return common_type_of([typer.of(node.this), *typer.all_of(node)], common_type_but_text)


def _not_nan(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    types = [typer.of(node.this), typer.of(node.args.get("expression"))]
    if None in types:
        return None
    return types[0] if kind(types[0]) == kind(types[1]) == "float" else DOUBLE


_EXACT = {"float": Decimal(14, 7), "double": Decimal(30, 15), "string": Decimal(38, 18)}
"""The decimals as which ceil and floor with digits take numbers (`DecimalType.forType`)."""


def _rounded(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_, scale = typer.first(node), _digits(argument(node, 1))
    name = kind(type_)
    if name in ("string", "void"):
        return DOUBLE
    if name in RANKS:
        return type_
    return _to_scale(type_, scale) if isinstance(type_, Decimal) and scale is not None else None


def _digits(node: exp.Expr | None) -> int | None:
    """Returns the literal number of digits after the point; 0 if there is none."""
    if node is None:
        return 0
    sign, number = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    is_whole = isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()
    return sign * int(number.name) if is_whole else None


def _to_scale(type_: Decimal, scale: int) -> Decimal:
    """Returns `RoundBase.dataType`: rounding may add one digit before the point."""
    whole = type_.precision - type_.scale + 1
    if scale < 0:
        return Decimal(min(max(whole, 1 - scale), MOST_DIGITS), 0)
    kept = min(type_.scale, scale)
    return Decimal(min(whole + kept, MOST_DIGITS), kept)


def _to_whole(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of ceil and floor."""
    type_ = typer.of(node.this)
    digits = node.args.get("decimals")
    if digits is None and not isinstance(type_, Decimal):
        return BIGINT if family(type_) in (NUMBER, "string", "void") else None
    scale = _digits(digits)
    exact = None if type_ is None else _EXACT.get(kind(type_)) or as_decimal(type_)
    return None if exact is None or scale is None else _to_scale(exact, scale)


def _text(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return text_of([typer.of(part) for part in node.iter_expressions()])


def _part_of_text(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of substring and similar functions: BINARY for BINARY, text for all others."""
    return BINARY if kind(typer.of(node.this)) == "binary" else _text(typer, node)


def _padded(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `lpad` and `rpad`: BINARY only if the padding is BINARY too or is absent."""
    padding = node.args.get("fill_pattern")
    is_binary = padding is None or kind(typer.of(padding)) == "binary"
    return _part_of_text(typer, node) if is_binary else _text(typer, node)


def _concatenated(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return _joined(typer.all_of(node))


def _pipe(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `a || b`. Spark reads `a || b + c` as `(a || b) + c`, sqlglot does not."""
    right = node.args["expression"]
    return None if isinstance(right, exp.Add | exp.Sub) else _joined([typer.of(node.this), typer.of(right)])


def _joined(types: list[DataType | None]) -> DataType | None:
    if any(isinstance(type_, Array) for type_ in types):
        return common_type_of(types) if all(isinstance(type_, Array) for type_ in types) else None
    if types and all(kind(type_) == "binary" for type_ in types):
        return BINARY
    return text_of(types)


def _collated(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `x collate utf8_lcase`."""
    text = typer.of(node.this)
    is_text = isinstance(text, Primitive) and text.name == "string"
    return collated(node.args["expression"].name) if is_text else None


_SECONDS, _SMALL, _OTHERS = (
    frozenset(names.split())
    for names in (
        "s sec second seconds secs",
        "mon mons month months h hour hours hr hrs m min mins minute minutes",
        "y year years yr yrs d day days yearofweek qtr quarter w week weeks dayofweek dow dayofweek_iso dow_iso doy",
    )
)
"""The names of fields (`DatePart.parseExtractField` and `ExtractIntervalPart.parseExtractField`)."""

TIME_FIELDS = _SECONDS | _SMALL | _OTHERS


def _extracted(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return _time_field(node.this.name, typer.of(node.args.get("expression")))


def _date_part(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    field, source = argument(node), argument(node, 1)
    return _time_field(field.name, typer.of(source)) if isinstance(field, exp.Literal) else None


def _time_field(name: str, source: DataType | None) -> DataType | None:
    name, is_interval = name.lower(), kind(source) in SPANS
    if not is_interval and kind(source) not in {*DATETIMES, "string"}:
        return None
    if name in _SECONDS:
        return Decimal(8, 6)
    if name in _SMALL:
        return TINYINT if is_interval else INT
    return INT if name in _OTHERS else None


def _moment(type_: DataType | None) -> DataType | None:
    """Returns a timestamp type unchanged, and TIMESTAMP for a date or text."""
    name = kind(type_)
    if name == "timestamp_ntz":
        return type_
    return TIMESTAMP if name in ("timestamp", "date", "string") else None


def _in_zone(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of from_utc_timestamp and to_utc_timestamp. Spark has no `x AT TIME ZONE y`."""
    return TIMESTAMP if typer.name(node) else None


def _window(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    bound = _start_of_window(typer, node) or _moment(typer.first(node))
    return struct_of((("start", bound), ("end", bound)))


def _start_of_window(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return type_.fields[0].type if isinstance(type_, Struct) and type_.fields else None


def _described_by(place: int, missing: DataType | None = None) -> Handler:
    """Returns the rule for a function whose argument at `place` is a literal type or schema."""

    def type_of_node(_typer: TypeResolver, node: exp.Expr) -> DataType | None:
        literal = argument(node, place)
        if literal is None:
            return missing
        return _literal_type(literal.name) if isinstance(literal, exp.Literal) and literal.is_string else None

    return type_of_node


def _literal_type(ddl: str) -> DataType | None:
    type_ = read_type(ddl)
    if type_ is not None:
        return type_
    try:
        return parse_schema(ddl)
    except TypeSyntaxError:
        return None


HANDLERS: Handlers = {
    exp.DecodeCase: _decode,
    **dict.fromkeys((exp.Greatest, exp.Least), _greatest),
    exp.Nanvl: _not_nan,
    "zeroifnull": lambda typer, node: common_type_of((typer.first(node), INT)),
    **dict.fromkeys((exp.Round, "bround"), _rounded),
    **dict.fromkeys((exp.Ceil, exp.Floor), _to_whole),
    **dict.fromkeys((exp.Concat, exp.Elt), _concatenated),
    exp.DPipe: _pipe,
    exp.Collate: _collated,
    exp.Pad: _padded,
    exp.Decode: _text,
    **dict.fromkeys((exp.Substring, exp.Overlay, exp.Left), _part_of_text),
    exp.Extract: _extracted,
    **dict.fromkeys(("date_part", "datepart"), _date_part),
    exp.TsOrDsAdd: lambda _typer, _node: DATE,
    exp.TimestampAdd: lambda typer, node: _moment(typer.of(node.this)),
    exp.DateDiff: lambda _typer, node: INT if node.args.get("unit") is None else BIGINT,
    **dict.fromkeys((exp.AtTimeZone, exp.FromTimeZone), _in_zone),
    **dict.fromkeys(("window", "session_window"), _window),
    "window_time": _start_of_window,
    **dict.fromkeys((exp.FromJson, "from_csv", "from_xml"), _described_by(1)),
    **dict.fromkeys(("variant_get", "try_variant_get"), _described_by(2, missing=VARIANT)),
}
