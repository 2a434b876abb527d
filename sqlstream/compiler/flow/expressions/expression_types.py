"""The type of an expression as Spark's analyzer finds it with its defaults: ANSI mode on, time zone UTC.

An uncertain type is None. Types say nothing about nullability: every result may be null.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlstream.compiler.flow.expressions import function_types, literals
from sqlstream.compiler.flow.expressions.literals import (
    ColumnType,
    Handler,
    Handlers,
    Known,
    TypeResolver,
    argument,
    number_type,
)
from sqlstream.compiler.flow.type_rules import (
    BIGINT,
    BOOLEAN,
    BY_RANK,
    DIGITS,
    DOUBLE,
    INT,
    NUMBER,
    RANKS,
    SPANS,
    STRING,
    VARIANT,
    VOID,
    array_of,
    common_type_of,
    element_type,
    family,
    field_type,
    is_plain,
    kind,
    map_of,
    operator_type,
    struct_of,
    tightest_type,
)
from sqlstream.project.types.data_types import Array, DataType, Decimal, Map, Struct

Columns = tuple[tuple[str, DataType | None], ...]


def _column(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of a column, or of a lambda variable that sqlglot misses because of its letter case."""
    if node.is_star:
        return None
    parts = node.parts if isinstance(node, exp.Column) else []
    variable = typer.variable(parts[0].name) if parts else None
    if variable is None:
        return typer.column(node)
    found = variable[0]
    for part in parts[1:]:
        found = field_type(found, part.name)
    return found


def _identifier(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    variable = typer.variable(node.name)
    return None if variable is None else variable[0]


def _dot(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    name = node.args["expression"]
    return field_type(typer.of(node.this), name.name) if isinstance(name, exp.Identifier) else None


def _bracket(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        return None
    base, key = typer.of(node.this), node.expressions[0]
    if isinstance(key, exp.Literal) and key.is_string and not isinstance(base, Map):
        return field_type(base, key.name)
    return element_type(base)


def _map(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    keys, values = node.args.get("keys"), node.args.get("values")
    if not isinstance(keys, exp.Array) or not isinstance(values, exp.Array):
        return None
    return map_of(common_type_of(typer.all_of(keys)), common_type_of(typer.all_of(values)))


def _struct(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    is_named = typer.name(node) != "struct"
    fields: list[tuple[str, DataType | None]] = []
    for part in node.expressions:
        columns = typer.column(part) if part.is_star and not is_named else None
        if isinstance(columns, Struct):
            fields += [(field.name, field.type) for field in columns.fields]
        elif not isinstance(part, exp.PropertyEQ) or (is_named and not _is_literal_name(part, node, typer.sql)):
            return None
        else:
            value = part.args["expression"]
            name = part.this.name if is_named else _field_name(part.this, value, len(fields) + 1)
            fields.append((name, typer.of(value)))
    return struct_of(fields)


def _is_literal_name(part: exp.PropertyEQ, call: exp.Expr, sql: str) -> bool:
    """Returns whether the name of a field is a literal in a call of `named_struct`: it can be any expression."""
    name, start = part.this.name, call.meta.get("end")
    for quoted in (f"'{name}'", f'"{name}"'):
        at = -1 if start is None else sql.find(quoted, start)
        if at >= 0 and sql[:at].rstrip()[-1:] in "(," and sql[at + len(quoted) :].lstrip()[:1] == ",":
            return True
    return False


def _field_name(given: exp.Expr, value: exp.Expr, place: int) -> str:
    """Returns the name in a `struct`: an alias, the last part of a reference, or the place (`CreateStruct.create`)."""
    if isinstance(value, exp.Column | exp.Identifier) or given.meta:  # sqlglot's own names have no place
        return given.name
    return reference_name(value) or f"col{place}"


def reference_name(value: exp.Expr) -> str | None:
    """Returns the last name of a reference such as `a.b`, `m['k']` or `f(x).name`; None for other expressions."""
    value = value.unnest()
    if isinstance(value, exp.Dot):
        return str(value.args["expression"].name)
    if isinstance(value, exp.Column | exp.Identifier):
        return value.name
    if not isinstance(value, exp.Bracket) or value.args.get("offset") is not None:  # element_at() has an offset
        return None
    key = value.expressions[0]
    return key.name if isinstance(key, exp.Literal) and key.is_string else None


def _tuple(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    names = [value.alias if isinstance(value, exp.Alias) else reference_name(value) for value in node.expressions]
    named = (name or f"col{place}" for place, name in enumerate(names, 1))
    return struct_of(zip(named, typer.all_of(node), strict=True))


def _operands(typer: TypeResolver, left: exp.Expr, right: exp.Expr) -> tuple[DataType, DataType] | None:
    """Returns the types of both sides. A whole number beside a decimal has only the digits written."""
    one, other = typer.of(left), typer.of(right)
    if one is None or other is None:
        return None
    if isinstance(one, Decimal) and kind(other) in DIGITS:
        other = _digits_written(typer, right, other)
    elif isinstance(other, Decimal) and kind(one) in DIGITS:
        one = _digits_written(typer, left, one)
    return None if one is None or other is None else (one, other)


def _digits_written(typer: TypeResolver, node: exp.Expr, type_: DataType) -> DataType | None:
    node = node.unnest()
    node = node.this if isinstance(node, exp.Neg) else node
    if isinstance(node, exp.TryCast):  # 1L
        end = node.this.meta.get("end")
        node = node.this if end is not None and typer.sql[end].isalpha() else node
    if not isinstance(node, exp.Literal) or node.is_string:
        return type_
    if _has_plus(typer.sql, node.meta.get("start", 0)):
        return None
    return Decimal(max(len(node.name.lstrip("0")), 1), 0)


def _has_plus(sql: str, start: int) -> bool:
    """Returns whether a number has a plus sign, which sqlglot drops and Spark reads as an operator: `a * +1`."""
    before = sql[:start].rstrip()
    return before.endswith("+") and before[:-1].rstrip()[-1:] in set("+-*/%(,=<>|")


def _arithmetic(operator: str) -> Handler:
    """Returns the rule for an arithmetic operator, or for a function of two operands such as `pmod`."""

    def type_of_node(typer: TypeResolver, node: exp.Expr) -> DataType | None:
        arguments = list(node.iter_expressions())
        types = _operands(typer, *arguments) if len(arguments) == len(("left", "right")) else None
        return None if types is None else operator_type(operator, *types)

    return type_of_node


def _sign(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `-x`, `abs(x)` and `positive(x)`: that of x; DOUBLE for text and NULL."""
    value = argument(node)
    if isinstance(node, exp.Neg) and isinstance(value, exp.Literal) and not value.is_string:
        return number_type(value.name, negative=True)
    type_ = typer.of(value)
    if kind(type_) in ("string", "void"):
        return DOUBLE
    return type_ if family(type_) in (NUMBER, "interval") or kind(type_) in SPANS else None


def _plus_sign(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `+x`, which `parse` turns into a call of `positive` without a place."""
    return _sign(typer, node) if node.this == "positive" else None


def _bits(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    left, right = typer.of(node.this), typer.of(node.args["expression"])
    found = None if left is None or right is None else tightest_type(left, right)
    return found if kind(found) in DIGITS else None


def _negated_bits(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_ if kind(type_) in DIGITS else None


def _shifted(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of a shifted number: INT unless it is a BIGINT."""
    name = kind(typer.first(node))
    return BY_RANK[max(RANKS[name], RANKS[INT.name])] if name in DIGITS else None


def _alias(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `x as a`. sqlglot also reads `v:field` of a variant as an alias."""
    return typer.of(node.this) if isinstance(node.args.get("alias"), exp.Identifier) else None


def _case(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return common_type_of(map(typer.of, [*branches, default] if default else branches))


_LOGICAL = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Exists, exp.Any, exp.All),
)
_WRAPPERS = (exp.Paren, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Order)


_HANDLERS: Handlers = {
    **function_types.HANDLERS,
    **literals.HANDLERS,
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Array: lambda typer, node: array_of(common_type_of(typer.all_of(node))),
    exp.VarMap: _map,
    exp.Struct: _struct,
    exp.Tuple: _tuple,
    **dict.fromkeys(_LOGICAL, lambda _typer, _node: BOOLEAN),
    **dict.fromkeys((exp.Add, exp.SafeAdd), _arithmetic("+")),
    **dict.fromkeys((exp.Sub, exp.SafeSubtract), _arithmetic("-")),
    **dict.fromkeys((exp.Mul, exp.SafeMultiply), _arithmetic("*")),
    **dict.fromkeys((exp.Div, exp.SafeDivide), _arithmetic("/")),
    **dict.fromkeys((exp.Mod, "pmod", "try_mod"), _arithmetic("%")),
    exp.IntDiv: lambda _typer, _node: BIGINT,
    exp.Anonymous: _plus_sign,
    **dict.fromkeys((exp.Neg, exp.Negative, exp.Abs, "positive"), _sign),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _bits),
    exp.BitwiseNot: _negated_bits,
    **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift, "shiftrightunsigned"), _shifted),
    exp.Subquery: lambda typer, node: typer.column(node),
    exp.Alias: _alias,
    exp.Distinct: lambda typer, node: typer.of(node.expressions[0]) if len(node.expressions) == 1 else None,
    **dict.fromkeys(_WRAPPERS, lambda typer, node: typer.of(node.this)),
    exp.Case: _case,
}


def type_of(node: exp.Expr, column_type: ColumnType, sql: str, known: Known) -> DataType | None:
    """Returns the type of an expression in a sqlglot tree; None if it is uncertain.

    `column_type` gives the types of columns and scalar subqueries. `sql` is the parsed text, to which the nodes'
    offsets refer: function names are read from it because sqlglot renames some. `known` holds the types found so far,
    and receives all types found here.
    """
    return TypeResolver(_HANDLERS, column_type, sql, known).of(node)


def generator_columns(node: exp.Expr, column_type: ColumnType, sql: str) -> Columns | None:
    """Returns the names and types of a generator's columns; None if they are unknown.

    A type is None if only the name is known.
    """
    typer = TypeResolver(_HANDLERS, column_type, sql, {})
    generator = GENERATORS.get(typer.name(node))
    return None if generator is None else generator(typer, node)


def _explode(typer: TypeResolver, node: exp.Expr) -> Columns | None:
    type_ = typer.of(node.this)
    if isinstance(type_, Array):
        return (("col", type_.element),)
    return (("key", type_.key), ("value", type_.value)) if isinstance(type_, Map) else None


def _position_and_explode(typer: TypeResolver, node: exp.Expr) -> Columns | None:
    columns = _explode(typer, node)
    return None if columns is None else (("pos", INT), *columns)


def _inline(typer: TypeResolver, node: exp.Expr) -> Columns | None:
    type_ = typer.first(node)
    if not isinstance(type_, Array) or not isinstance(type_.element, Struct):
        return None
    return tuple((field.name, field.type) for field in type_.element.fields)


def _stack(typer: TypeResolver, node: exp.Expr) -> Columns | None:
    rows = node.this
    if not isinstance(rows, exp.Literal) or not rows.name.isdecimal() or not int(rows.name):
        return None
    width = -(-len(node.expressions) // int(rows.name))
    return tuple((f"col{place}", _one_type(typer, node.expressions[place::width])) for place in range(width))


def _one_type(typer: TypeResolver, values: list[exp.Expr]) -> DataType | None:
    """Returns the type that all values except NULLs have, as Spark requires."""
    types = {type_ for type_ in map(typer.of, values) if type_ != VOID}
    return types.pop() if len(types) == 1 else None


def _json_tuple(typer: TypeResolver, node: exp.Expr) -> Columns | None:
    type_ = STRING if is_plain(typer.of(argument(node))) else None
    return tuple((f"c{place}", type_) for place in range(len(node.expressions) - 1))


def _variant(_typer: TypeResolver, _node: exp.Expr) -> Columns:
    return ("pos", INT), ("key", STRING), ("value", VARIANT)


GENERATORS: dict[str, Callable[[TypeResolver, exp.Expr], Columns | None]] = {
    "explode": _explode,
    "explode_outer": _explode,
    "posexplode": _position_and_explode,
    "posexplode_outer": _position_and_explode,
    "inline": _inline,
    "inline_outer": _inline,
    "stack": _stack,
    "json_tuple": _json_tuple,
    "variant_explode": _variant,
    "variant_explode_outer": _variant,
}
"""The generators with known columns, by name."""
