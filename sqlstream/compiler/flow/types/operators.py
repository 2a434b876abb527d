"""The types of operators and of expressions that choose or pass on a value, such as CASE and parentheses."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.families import NUMBER, common_type_of, family, operator_type, tightest_type
from sqlstream.compiler.flow.types.literals import Handler, Handlers, TypeResolver, argument, number_type
from sqlstream.compiler.flow.types.values import BIGINT, BOOLEAN, BY_RANK, DIGITS, DOUBLE, INT, RANKS, SPANS, kind
from sqlstream.project.types.types import DataType, Decimal


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


def _value(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return typer.of(node.this)


def _alias(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `x as a`. sqlglot also reads `v:field` of a variant as an alias."""
    return typer.of(node.this) if isinstance(node.args.get("alias"), exp.Identifier) else None


def _distinct(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return typer.of(node.expressions[0]) if len(node.expressions) == 1 else None


def _case(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return common_type_of(map(typer.of, [*branches, default] if default else branches))


_LOGICAL = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Exists, exp.Any, exp.All),
)
_WRAPPERS = (exp.Paren, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Order)

HANDLERS: Handlers = {
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
    exp.Distinct: _distinct,
    **dict.fromkeys(_WRAPPERS, _value),
    exp.Case: _case,
}
