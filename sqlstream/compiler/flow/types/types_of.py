"""The type of an expression as Spark's analyzer finds it with its defaults: ANSI mode on, time zone UTC.

An uncertain type is None. Types say nothing about nullability: every result may be null.
"""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types import aggregates, collections, literals, nested, operators, scalars
from sqlstream.compiler.flow.types.generators import GENERATORS, Columns
from sqlstream.compiler.flow.types.typer import ColumnType, Handlers, Known, TypeResolver
from sqlstream.project.types.types import DataType

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
