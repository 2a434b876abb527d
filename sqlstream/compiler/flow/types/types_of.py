"""The type of an expression as Spark's analyzer finds it with its defaults: ANSI mode on, time zone UTC.

An uncertain type is None. Types say nothing about nullability: every result may be null.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlstream.compiler.flow.types import aggregates, collections, literals, nested, operators, scalars
from sqlstream.compiler.flow.types.literals import ColumnType, Handlers, Known, TypeResolver, argument
from sqlstream.compiler.flow.types.values import INT, STRING, VARIANT, VOID, is_plain
from sqlstream.project.types.types import Array, DataType, Map, Struct

_HANDLERS: Handlers = {
    **aggregates.HANDLERS,
    **collections.HANDLERS,
    **literals.HANDLERS,
    **nested.HANDLERS,
    **operators.HANDLERS,
    **scalars.HANDLERS,
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


Columns = tuple[tuple[str, DataType | None], ...]


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
