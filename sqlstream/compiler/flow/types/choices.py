"""The types of expressions that choose among others: CASE, IF, COALESCE, GREATEST and the like."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import common_type_but_text, common_type_of
from sqlstream.compiler.flow.types.families import family
from sqlstream.compiler.flow.types.typer import Handler, Typer, argument
from sqlstream.compiler.flow.types.values import DOUBLE, INT, kind
from sqlstream.project.types.types import DataType


def _this(typer: Typer, node: exp.Expr) -> DataType | None:
    return typer.of(node.this)


def _alias(typer: Typer, node: exp.Expr) -> DataType | None:
    """`v:field` of a variant is an alias to sqlglot, with something else than a name."""
    return typer.of(node.this) if isinstance(node.args.get("alias"), exp.Identifier) else None


def _distinct(typer: Typer, node: exp.Expr) -> DataType | None:
    return typer.of(node.expressions[0]) if len(node.expressions) == 1 else None


def _case(typer: Typer, node: exp.Expr) -> DataType | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return common_type_of(typer.of(branch) for branch in ([*branches, default] if default else branches))


def _decode(typer: Typer, node: exp.Expr) -> DataType | None:
    """decode(value, search, result, ..., default): the results, and what is left over at the end.

    Beside values of another type they are cast, too.
    """
    value, *pairs = node.expressions
    results = pairs[1::2] if len(pairs) % 2 == 0 else [*pairs[1::2], pairs[-1]]
    found = common_type_of(map(typer.of, results))
    return found if family(found) == family(typer.of(value)) else None


def _greatest(typer: Typer, node: exp.Expr) -> DataType | None:
    return common_type_of((typer.of(value) for value in (node.this, *node.expressions)), common_type_but_text)


def _zero_if_null(typer: Typer, node: exp.Expr) -> DataType | None:
    return common_type_of((typer.of(argument(node)), INT))


def _not_nan(typer: Typer, node: exp.Expr) -> DataType | None:
    types = [typer.of(node.this), typer.of(node.args.get("expression"))]
    if None in types:
        return None
    return types[0] if kind(types[0]) == kind(types[1]) == "float" else DOUBLE


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.Subquery: lambda typer, node: typer.column(node),
    exp.Alias: _alias,
    exp.Distinct: _distinct,
    **dict.fromkeys((exp.Paren, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Order), _this),
    exp.Case: _case,
    exp.DecodeCase: _decode,
    exp.Greatest: _greatest,
    exp.Least: _greatest,
    exp.Nanvl: _not_nan,
}

BY_NAME: dict[str, Handler] = {
    "zeroifnull": _zero_if_null,
}
