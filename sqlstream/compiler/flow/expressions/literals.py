"""The types of literals and casts: numbers by their digits, intervals by their units, casts by the type they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from sqlstream.compiler.flow.functions import FUNCTIONS
from sqlstream.compiler.flow.type_rules import (
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
from sqlstream.project.types.data_types import DataType, Decimal, Primitive, Unknown

ColumnType = Callable[[exp.Expr], DataType | None]
Known = dict[int, tuple[DataType | None, exp.Expr]]
"""Types by the `id` of their expression. The expression is kept too, so that no other object gets its id."""

Handler = Callable[["TypeResolver", exp.Expr], DataType | None]
Handlers = Mapping[str | type[exp.Expr], Handler]
"""The rules that need code: by function name, or by node class."""

DEEPEST_NESTING = 80
"""The greatest depth of nested expressions; deeper types are unknown. Python's stack allows some more."""

_SAME_NAMES = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "binary", "date", "variant")
_PLAIN: dict[object, DataType] = {
    **{exp.DType[name.upper()]: Primitive(name) for name in _SAME_NAMES},
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DType.INTERVAL: CALENDAR_INTERVAL,
}
"""sqlglot's types without parts."""


class TypeResolver:
    """Knows the types of columns and of lambda variables during one walk through an expression.

    It adds the types that it finds to `known`, except those that depend on lambda variables.
    """

    __slots__ = ("_column_type", "_depth", "_handlers", "_known", "_variables", "sql")

    def __init__(
        self,
        handlers: Handlers,
        column_type: ColumnType,
        sql: str,
        known: Known,
        variables: Mapping[str, DataType | None] | None = None,
        depth: int = 0,
    ) -> None:
        self._handlers = handlers
        self._column_type = column_type
        self._known = known
        self._variables = variables or {}
        self._depth = depth
        self.sql = sql

    def of(self, node: object) -> DataType | None:
        """Returns the type of an expression; None if it is unknown."""
        if not isinstance(node, exp.Expr):
            return None
        known = None if self._variables else self._known.get(id(node))
        if known is not None:
            return known[0]
        if self._depth >= DEEPEST_NESTING:
            return None
        self._depth += 1
        found = self._found(node)
        self._depth -= 1
        type_ = None if isinstance(found, Unknown) else found
        if not self._variables:
            self._known[id(node)] = (type_, node)
        return type_

    def _found(self, node: exp.Expr) -> DataType | None:
        if isinstance(node, exp.Func):
            name = self.name(node) or WITHOUT_PLACE.get(type(node), ("",))[0]
            named = self._handlers.get(name)
            if named is not None:
                return named(self, node)
            signature = FUNCTIONS.get(name)
            if signature is not None and signature.result is not None:
                types = [] if signature.is_fixed else list(map(self.of, node.iter_expressions()))
                return signature.result_type(types)
        handler = self._handlers.get(type(node))
        return None if handler is None else handler(self, node)

    def first(self, node: exp.Expr) -> DataType | None:
        """Returns the type of the first argument of a call, without its DISTINCT."""
        value = argument(node)
        return self.of(argument(value) if isinstance(value, exp.Distinct) else value)

    def all_of(self, node: exp.Expr) -> list[DataType | None]:
        """Returns the types of `node.expressions`."""
        return [self.of(part) for part in node.expressions]

    def name(self, node: exp.Expr) -> str:
        """Returns a function's name as written, in lower case; empty if sqlglot does not keep its place."""
        meta = node.meta
        return self.sql[meta["start"] : meta["end"] + 1].strip("`").lower() if "start" in meta else ""

    def column(self, node: exp.Expr) -> DataType | None:
        """Returns the type of a reference or scalar subquery; for a star, a struct of its columns."""
        return self._column_type(node)

    def variable(self, name: str) -> tuple[DataType | None] | None:
        """Returns the type of a lambda variable in a tuple; None if there is no such variable."""
        name = name.lower()
        return (self._variables[name],) if name in self._variables else None

    def of_lambda(self, node: object, *types: DataType | None) -> DataType | None:
        """Returns the type of a lambda's body if its variables have `types`."""
        if not isinstance(node, exp.Lambda) or len(node.expressions) > len(types):
            return None
        names = (variable.name.lower() for variable in node.expressions)
        variables = {**self._variables, **dict(zip(names, types, strict=False))}
        return TypeResolver(self._handlers, self._column_type, self.sql, self._known, variables, self._depth).of(
            node.this
        )


def argument(node: exp.Expr, place: int = 0) -> exp.Expr | None:
    """Returns one argument of a call, in sqlglot's order; None if there are too few."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    return arguments[place] if place < len(arguments) else None


_LARGEST_INT = 2**31 - 1
_LARGEST_BIGINT = 2**63 - 1
_DEFAULT_TIME_DIGITS = "6"


def number_type(text: str, *, negative: bool = False) -> DataType | None:
    """Returns the type of a number without a suffix: `7` is an INT, `1.50` a DECIMAL(3,2), `1e0` a DOUBLE."""
    if text.isdecimal():
        return _whole(text, negative)
    return DOUBLE if "e" in text.lower() else decimal_literal(text)


def _whole(text: str, negative: bool) -> DataType | None:
    digits = text.lstrip("0")
    if len(digits) > MOST_DIGITS:
        return None
    value = int(digits or "0") - negative  # -2147483648 is still an INT
    if value <= _LARGEST_INT:
        return INT
    return BIGINT if value <= _LARGEST_BIGINT else Decimal(len(digits), 0)


def decimal_literal(text: str) -> Decimal | None:
    """Returns the smallest decimal for a number without an exponent, with the digits that `BigDecimal` counts."""
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdecimal():
        return None
    digits = (whole + fraction).lstrip("0")
    precision = max(len(digits), len(fraction), 1)  # 0.001 is a DECIMAL(3,3)
    return None if precision > MOST_DIGITS else Decimal(precision, len(fraction))


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
    exp.Literal: lambda _typer, node: STRING if node.args["is_string"] else number_type(node.name),
    exp.RawString: lambda _typer, _node: STRING,
    exp.HexString: _hexadecimal,
    exp.Boolean: lambda _typer, _node: BOOLEAN,
    exp.Null: lambda _typer, _node: VOID,
    exp.Interval: _interval,
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
}


WITHOUT_PLACE: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.AnyValue: ("any_value",),
    exp.ApproxQuantile: ("percentile_approx", "approx_percentile"),
    exp.ArgMax: ("max_by",),
    exp.ArgMin: ("min_by",),
    exp.Chr: ("chr", "char"),
    exp.Count: ("count",),
    exp.CumeDist: ("cume_dist",),
    exp.CurrentDate: ("current_date",),
    exp.CurrentTimestamp: ("current_timestamp",),
    exp.CurrentUser: ("current_user",),
    exp.DenseRank: ("dense_rank",),
    exp.First: ("first",),
    exp.FirstValue: ("first_value",),
    exp.If: ("if",),
    exp.Initcap: ("initcap",),
    exp.Last: ("last",),
    exp.LastValue: ("last_value",),
    exp.LogicalAnd: ("bool_and", "every"),
    exp.LogicalOr: ("bool_or", "any", "some"),
    exp.Ntile: ("ntile",),
    exp.PercentRank: ("percent_rank",),
    exp.Quantile: ("percentile",),
    exp.Rank: ("rank",),
    exp.RowNumber: ("row_number",),
    exp.StrPosition: ("position",),
    exp.Substring: ("substring", "substr"),
    exp.Trim: ("trim",),
}
"""The names that Spark has for these nodes of sqlglot, which do not keep the place of the name."""
