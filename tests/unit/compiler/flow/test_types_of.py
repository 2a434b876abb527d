"""Expression types inferred without Spark; `tests/spark/test_expression_types.py` compares a thousand with Spark."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from sqlstream.compiler.flow.expressions.expression_types import type_of
from sqlstream.project.types.data_types import DataType
from sqlstream.project.types.ddl import parse_type

COLUMNS = {"amount": "decimal(10,2)", "name": "string", "at": "timestamp", "odd": "geometry(4326)"}


def column_type(node: exp.Expr) -> DataType | None:
    """Returns the type of the column with this last name, or None; also None for a scalar subquery."""
    type_ = COLUMNS.get(node.name)
    return None if type_ is None else parse_type(type_)


def inferred_type(expression: str) -> str | None:
    """Returns the type of one expression as Spark writes it."""
    sql = f"select {expression}"
    (tree,) = Spark().parse(sql)
    assert tree is not None
    type_ = type_of(tree.expressions[0], column_type, sql, {})
    return None if type_ is None else str(type_)


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("sum(amount) * 2", "decimal(22,2)"),
        ("coalesce(name, 'none')", "string"),
        ("max_by(struct(name, amount), at)", "struct<name:string,amount:decimal(10,2)>"),
        ("window(at, '10 minutes').start", "timestamp"),
        ("transform(split(name, ','), part -> length(part))", "array<int>"),
        ("from_json(name, 'a array<struct<b:date>>').a[0].b", "date"),
    ],
)
def test_everyday_expressions_have_a_type(expression: str, type_: str) -> None:
    """Types are inferred through functions, fields and lambdas."""
    assert inferred_type(expression) == type_


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "missing",
            "upper(missing)",
            "my_udf(name)",
            "other.upper(name)",
            "(select 1)",
            "v:field",
            "?",
            "greatest(odd, 1)",
        ),
        *("name || amount + 1", "amount * +1", "named_struct(lower('A'), 1)", "concat(name, array(1))", "0x1F"),
        *("if(true, name, array(1))", "cast(name as decimal(50,60))", "struct(*)", "case when true then missing end"),
    ],
)
def test_uncertain_types_are_unknown(expression: str) -> None:
    """Untyped columns, user functions and expressions that sqlglot reads differently from Spark have no type."""
    assert inferred_type(expression) is None


@pytest.mark.parametrize(
    "expression",
    [
        "get()",
        "positive()",
        "map_values()",
        "zeroifnull()",
        "sum(distinct)",
        "cast(1 as decimal(x))",
        "transform_keys()",
    ],
)
def test_invalid_calls_have_no_type(expression: str) -> None:
    """An invalid call has no type and raises no error; Spark itself refuses it."""
    assert inferred_type(expression) is None


def test_deep_nesting_has_no_type() -> None:
    """A chain of operators too deep for Python's stack has no type and raises no error."""
    assert inferred_type(" || ".join(["name"] * 200)) is None
