"""The types of function calls that no signature can describe."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.expressions.literals import Handler, Handlers, TypeResolver, argument
from sqlstream.compiler.flow.type_rules import (
    BIGINT,
    BINARY,
    DATE,
    DATETIME,
    DATETIMES,
    DIGITS,
    DOUBLE,
    INT,
    MOST_DIGITS,
    NUMBER,
    RANKS,
    SPANS,
    STRING,
    TIMESTAMP,
    TINYINT,
    VARIANT,
    WIDEST_INTERVALS,
    array_of,
    as_decimal,
    collated,
    common_type_but_text,
    common_type_of,
    element_type,
    family,
    is_plain,
    kind,
    map_of,
    read_type,
    struct_of,
    text_of,
)
from sqlstream.project.types.data_types import Array, DataType, Decimal, Map, Primitive, Struct
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema

_SUM_DIGITS = 10
"""The digits that the sum of decimals adds (`Sum.resultType`)."""

_AVERAGE_DIGITS = 4
"""The digits that the average of decimals adds before and after the point (`Average.resultType`)."""

_FRACTIONS = frozenset({"float", "double", "string", "void"})

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


def _sum(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    name = kind(type_)
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision + _SUM_DIGITS, MOST_DIGITS), type_.scale)
    if name in DIGITS:
        return BIGINT
    return DOUBLE if name in _FRACTIONS else type_ if name in SPANS else None


def _average(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    if isinstance(type_, Decimal):
        precision, scale = type_.precision + _AVERAGE_DIGITS, type_.scale + _AVERAGE_DIGITS
        return Decimal(min(precision, MOST_DIGITS), min(scale, MOST_DIGITS))
    return _middle(type_)


def _middle(type_: DataType | None) -> DataType | None:
    """Returns the type of a median: DOUBLE for numbers, and the widest interval of the family for intervals."""
    name = kind(type_)
    if name in SPANS:
        return WIDEST_INTERVALS[SPANS[name][0]]
    return DOUBLE if family(type_) in (NUMBER, "string", "void") else None


def _approximate_percentile(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    if kind(type_) == "string":
        type_ = DOUBLE
    elif family(type_) not in (NUMBER, DATETIME, *WIDEST_INTERVALS):
        return None
    return _per_share(typer, node.args.get("quantile"), type_)


def _per_share(typer: TypeResolver, share: object, type_: DataType | None) -> DataType | None:
    """Returns `type_` if `share` is one number, and an array of it for an array of numbers."""
    shares = typer.of(share)
    return None if shares is None else array_of(type_) if isinstance(shares, Array) else type_


def _within_group(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    order = node.args.get("expression")
    if not isinstance(order, exp.Order) or not order.expressions:
        return None
    value = order.expressions[0].this
    if isinstance(node.this, exp.Mode):
        return typer.of(value)
    if isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return _per_share(typer, node.this.this, _middle(typer.of(value)))
    return typer.of(node.this) if isinstance(node.this, exp.GroupConcat) else None


def _extreme_by(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of max_by: one value, or an array of values if there is a count."""
    type_ = typer.of(node.this)
    return type_ if node.args.get("count") is None else array_of(type_)


def _joined_rows(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this.this if isinstance(node.this, exp.Order) else node.this)
    if kind(type_) == "binary":
        return BINARY
    return STRING if is_plain(type_) else None


def _histogram(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return array_of(struct_of((("x", type_), ("y", DOUBLE)))) if family(type_) in (NUMBER, DATETIME) else None


def _sequence(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    element = common_type_of((typer.of(node.args.get("start")), typer.of(node.args.get("end"))))
    step = node.args.get("step")
    if kind(element) in DIGITS and step is not None:
        element = common_type_of((element, typer.of(step)))
    return array_of(element) if kind(element) in {*DIGITS, *DATETIMES} else None


def _zipped(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    types = typer.all_of(node)
    if any(isinstance(value, exp.Dot | exp.Bracket | exp.Paren) for value in node.expressions):
        return None
    is_name = [isinstance(value, exp.Column | exp.Identifier) for value in node.expressions]
    names = [value.name if is_name[place] else str(place) for place, value in enumerate(node.expressions)]
    elements = [type_.element if isinstance(type_, Array) else None for type_ in types]
    return array_of(struct_of(zip(names, elements, strict=True)))


def _reversed(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_ if isinstance(type_, Array) or kind(type_) == "string" else None


def _map_concat(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    types = typer.all_of(node)
    return common_type_of(types) if types and all(isinstance(type_, Map) for type_ in types) else None


def _map_from_entries(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    pair = element_type(typer.of(node.this))
    if not isinstance(pair, Struct) or len(pair.fields) != len(("key", "value")):
        return None
    return Map(pair.fields[0].type, pair.fields[1].type)


def _transformed(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    array = typer.of(node.this)
    if not isinstance(array, Array):
        return None
    return array_of(typer.of_lambda(node.args.get("expression"), array.element, INT))  # INT: the index


def _aggregated(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `aggregate`: that of `finish`, or of the state, which keeps the type of its first value."""
    state, finish = typer.of(node.args.get("initial")), node.args.get("finish")
    return state if finish is None or state is None else typer.of_lambda(finish, state)


def _zipped_with(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    one, other = typer.of(argument(node)), typer.of(argument(node, 1))
    if not isinstance(one, Array) or not isinstance(other, Array):
        return None
    return array_of(typer.of_lambda(argument(node, 2), one.element, other.element))


def _map_zipped_with(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    one, other = typer.of(argument(node)), typer.of(argument(node, 1))
    if not isinstance(one, Map) or not isinstance(other, Map):
        return None
    key = common_type_of((one.key, other.key))
    return map_of(key, typer.of_lambda(argument(node, 2), key, one.value, other.value))


def _with_keys(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return map_of(_entry_type(typer, node, type_), type_.value) if isinstance(type_, Map) else None


def _with_values(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return map_of(type_.key, _entry_type(typer, node, type_)) if isinstance(type_, Map) else None


def _entry_type(typer: TypeResolver, node: exp.Expr, type_: Map) -> DataType | None:
    """Returns the type of a lambda over the keys and values of a map."""
    return typer.of_lambda(node.expressions[-1], type_.key, type_.value)


def _decode(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the common type of the results of decode(value, search, result, ..., default).

    If `value` has a type of another family, Spark casts the results too.
    """
    value, *pairs = node.expressions
    results = pairs[1::2] if len(pairs) % 2 == 0 else [*pairs[1::2], pairs[-1]]
    found = common_type_of(map(typer.of, results))
    return found if family(found) == family(typer.of(value)) else None


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


def _date_part(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    field, source = argument(node), argument(node, 1)
    return _time_field(field.name, typer.of(source)) if isinstance(field, exp.Literal) else None


def _time_field(name: str, source: DataType | None) -> DataType | None:
    name, is_interval = name.lower(), kind(source) in SPANS
    if not is_interval and kind(source) not in {*DATETIMES, "string"}:
        return None
    if name in _SECONDS:
        return Decimal(8, 6)  # with microseconds
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
    exp.Sum: _sum,
    "try_sum": _sum,
    exp.Avg: _average,
    "try_avg": _average,
    "mean": _average,
    exp.Median: lambda typer, node: _middle(typer.first(node)),
    exp.Quantile: lambda typer, node: _per_share(typer, node.args.get("quantile"), _middle(typer.first(node))),
    exp.ApproxQuantile: _approximate_percentile,
    exp.WithinGroup: _within_group,
    exp.ArgMax: _extreme_by,
    exp.ArgMin: _extreme_by,
    exp.GroupConcat: _joined_rows,
    exp.ApproxTopK: lambda typer, node: array_of(struct_of((("item", typer.first(node)), ("count", BIGINT)))),
    "histogram_numeric": _histogram,
    exp.GenerateSeries: _sequence,
    exp.ArraysZip: _zipped,
    exp.Reverse: _reversed,
    "map_concat": _map_concat,
    exp.MapFromEntries: _map_from_entries,
    exp.Transform: _transformed,
    exp.Reduce: _aggregated,
    "zip_with": _zipped_with,
    "map_zip_with": _map_zipped_with,
    "transform_keys": _with_keys,
    "transform_values": _with_values,
    exp.DecodeCase: _decode,
    **dict.fromkeys(
        (exp.Greatest, exp.Least),
        lambda typer, node: common_type_of([typer.of(node.this), *typer.all_of(node)], common_type_but_text),
    ),
    exp.Nanvl: _not_nan,
    "zeroifnull": lambda typer, node: common_type_of((typer.first(node), INT)),
    **dict.fromkeys((exp.Round, "bround"), _rounded),
    **dict.fromkeys((exp.Ceil, exp.Floor), _to_whole),
    **dict.fromkeys((exp.Concat, exp.Elt), lambda typer, node: _joined(typer.all_of(node))),
    exp.DPipe: _pipe,
    exp.Collate: _collated,
    exp.Pad: _padded,
    exp.Decode: _text,
    **dict.fromkeys((exp.Substring, exp.Overlay, exp.Left), _part_of_text),
    exp.Extract: lambda typer, node: _time_field(node.this.name, typer.of(node.args.get("expression"))),
    **dict.fromkeys(("date_part", "datepart"), _date_part),
    exp.TsOrDsAdd: lambda _typer, _node: DATE,  # date_add and date_sub
    exp.TimestampAdd: lambda typer, node: _moment(typer.of(node.this)),
    exp.DateDiff: lambda _typer, node: INT if node.args.get("unit") is None else BIGINT,  # BIGINT: TIMESTAMPDIFF
    **dict.fromkeys((exp.AtTimeZone, exp.FromTimeZone), _in_zone),
    **dict.fromkeys(("window", "session_window"), _window),
    "window_time": _start_of_window,
    **dict.fromkeys((exp.FromJson, "from_csv", "from_xml"), _described_by(1)),
    **dict.fromkeys(("variant_get", "try_variant_get"), _described_by(2, missing=VARIANT)),
}
