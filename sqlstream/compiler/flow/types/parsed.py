"""The types of functions that are told by a literal what they read: `from_json`, `variant_get`."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.typer import Handler, Typer
from sqlstream.compiler.flow.types.values import VARIANT
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_schema, parse_type
from sqlstream.project.types.types import DataType

_PATH_AND_TYPE = 3
"""The arguments of variant_get where a type is among them."""


def _from_json(_typer: Typer, node: exp.Expr) -> DataType | None:
    return _literal_type(node.args.get("expression"))


def _from_csv(_typer: Typer, node: exp.Expr) -> DataType | None:
    return _literal_type(node.expressions[1]) if len(node.expressions) > 1 else None


def _literal_type(node: object) -> DataType | None:
    """The type, or the columns, that stand in a text as Spark's DDL."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    try:
        return parse_type(node.name)
    except TypeSyntaxError:
        pass
    try:
        return parse_schema(node.name)
    except TypeSyntaxError:
        return None


def _variant_get(_typer: Typer, node: exp.Expr) -> DataType | None:
    if len(node.expressions) < _PATH_AND_TYPE:
        return VARIANT
    return _literal_type(node.expressions[-1])


BY_CLASS: dict[type[exp.Expr], Handler] = {exp.FromJson: _from_json}
BY_NAME: dict[str, Handler] = {
    "from_csv": _from_csv,
    "from_xml": _from_csv,
    "variant_get": _variant_get,
    "try_variant_get": _variant_get,
}
