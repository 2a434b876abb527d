"""The type of an expression, as Spark's analyser would find it with its defaults: ANSI on, time zone UTC.

What is not certain is None. Nullability is no part of it: whatever is found may be null.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlstream.compiler.flow.types import aggregates as aggregate_types
from sqlstream.compiler.flow.types import casts as cast_types
from sqlstream.compiler.flow.types import choices as choice_types
from sqlstream.compiler.flow.types import collections as collection_types
from sqlstream.compiler.flow.types import literals as literal_types
from sqlstream.compiler.flow.types import nested as nested_types
from sqlstream.compiler.flow.types import numbers as number_types
from sqlstream.compiler.flow.types import operators as operator_types
from sqlstream.compiler.flow.types import parsed as parsed_types
from sqlstream.compiler.flow.types import texts as text_types
from sqlstream.compiler.flow.types import times as time_types
from sqlstream.compiler.flow.types.generators import GENERATORS, Columns
from sqlstream.compiler.flow.types.typer import ColumnType, Known, Rules, Typer
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_type
from sqlstream.project.types.types import DataType

_RULES = Rules(
    by_name={
        **aggregate_types.BY_NAME,
        **choice_types.BY_NAME,
        **collection_types.BY_NAME,
        **number_types.BY_NAME,
        **operator_types.BY_NAME,
        **parsed_types.BY_NAME,
        **time_types.BY_NAME,
    },
    by_class={
        **aggregate_types.BY_CLASS,
        **cast_types.BY_CLASS,
        **choice_types.BY_CLASS,
        **collection_types.BY_CLASS,
        **literal_types.BY_CLASS,
        **nested_types.BY_CLASS,
        **number_types.BY_CLASS,
        **operator_types.BY_CLASS,
        **parsed_types.BY_CLASS,
        **text_types.BY_CLASS,
        **time_types.BY_CLASS,
    },
)


def type_of(node: exp.Expr, column_type: ColumnType, sql: str, known: Known) -> DataType | None:
    """Returns the type of an expression in a tree of sqlglot's, None where it is not certain.

    `column_type` is asked for columns and scalar subqueries; `sql` is the text that was parsed, in which the nodes'
    places are offsets: the names of functions are read from it, since sqlglot renames some. `known` are the types that
    have been found before, to which all others are added that are found on the way.
    """
    return Typer(_RULES, column_type, sql, known).of(node)


def generator_columns(node: exp.Expr, column_type: ColumnType, sql: str) -> Columns | None:
    """Returns the columns of a generator, each with its name and type; None where they are not known.

    A type is None where only the name is known. `stack` and `json_tuple` are among the generators.
    """
    typer = Typer(_RULES, column_type, sql, {})
    generator = GENERATORS.get(typer.name(node))
    return None if generator is None else generator(typer, node)


def own_functions(returns: Mapping[str, str | None]) -> dict[str, DataType | None]:
    """Returns the project's own functions, by name in lower case, from the types that they declare as Spark DDL."""
    return {name: _declared(ddl) for name, ddl in returns.items()}


def _declared(ddl: str | None) -> DataType | None:
    try:
        return parse_type(ddl) if ddl else None
    except TypeSyntaxError:
        return None
