"""The compiler's type of each expression equals the type in the schema of Spark's analyser."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from sqlstream.compiler.flow.expressions.expression_types import generator_columns, type_of
from sqlstream.compiler.flow.type_rules import common_type, field_type
from sqlstream.compiler.sql.sqlglot_tree import parse_sql
from sqlstream.project.types.data_types import DataType, Struct
from sqlstream.project.types.ddl import parse_schema

EXPRESSIONS = Path(__file__).parent / "fixtures" / "expressions"
TABLE = parse_schema("""
    i1 tinyint, i2 smallint, i4 int, i8 bigint, f4 float, f8 double, d decimal(10,2), dd decimal(38,10),
    d5 decimal(5,0), b boolean, s string, S2 string, sc string collate UTF8_LCASE, bin binary, n void, v variant,
    dt date, ts timestamp, ntz timestamp_ntz, cal interval, ym interval year to month, iy interval year,
    ds interval day to second, iday interval day, ihm interval hour to minute,
    ai array<int>, as_ array<string>, ad array<decimal(5,2)>, af8 array<double>, ai8 array<bigint>,
    aai array<array<int>>, adt array<date>, m map<string,int>, mi map<int,string>,
    st struct<a:int,b:string,c:struct<d:double>>, ast array<struct<k:string,w:bigint>>
""")
TYPES = {field.name.lower(): field.type for field in TABLE.fields} if isinstance(TABLE, Struct) else {}
UNCASTABLE = {"n": "null", "cal": "make_interval(1)"}
NUMBERS = ("i1", "i2", "i4", "i8", "f4", "f8", "d", "dd", "d5", "s", "n", "1", "2L", "-1", "1.5", "12e0")
KNOWN_AT_LEAST = 0.95


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> SparkSession:
    """A session with a view `t` that has a column of every type."""
    casts = (UNCASTABLE.get(name, f"cast(null as {type_})") + f" as {name}" for name, type_ in TYPES.items())
    spark.sql(f"select {', '.join(casts)}").createOrReplaceTempView("t")
    return spark


def column_type(node: exp.Expr) -> DataType | None:
    """Returns the type of a column of `t`, or of a field in one."""
    if not isinstance(node, exp.Column):
        return None
    first, *rest = [part.name for part in node.parts if part.name != "t"]
    found = TYPES.get(first.lower())
    for name in rest:
        found = field_type(found, name)
    return found


def ours(expressions: Iterable[str]) -> list[str | None]:
    """Returns the compiler's type of each expression."""
    found = []
    for expression in expressions:
        sql = f"select {expression} from t"
        tree = parse_sql(sql).tree
        assert tree is not None
        type_ = type_of(tree.expressions[0], column_type, sql, {})
        found.append(None if type_ is None else str(type_))
    return found


def theirs(table: SparkSession, expressions: Iterable[str]) -> list[str]:
    """Returns Spark's type of each expression, all in one query."""
    listed = ", ".join(f"{expression} as c{place}" for place, expression in enumerate(expressions))
    return [field.dataType.simpleString() for field in table.sql(f"select {listed} from t").schema]


def compare(expressions: list[str], ours: list[str | None], theirs: list[str]) -> float:
    """Returns the share of expressions with a known type, after asserting that each known type is right."""
    compared = list(zip(expressions, ours, theirs, strict=True))
    assert [line for line in compared if line[1] not in (None, line[2])] == []
    unknown = [line for line in compared if line[1] is None]
    print(f"{len(compared) - len(unknown)} of {len(compared)} known; not known:", *unknown, sep="\n  ")
    return 1 - len(unknown) / len(compared)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "aggregate"])
def test_known_types_are_those_of_spark(table: SparkSession, kind: str) -> None:
    """Of more than a thousand expressions at least 95 % have a known type, and none is wrong."""
    expressions = (EXPRESSIONS / f"{kind}.txt").read_text().splitlines()

    assert compare(expressions, ours(expressions), theirs(table, expressions)) >= KNOWN_AT_LEAST


def test_time_windows_are_known(table: SparkSession) -> None:
    """Types of time windows are known; each has its own query, because a query may have only one window."""
    expressions = (EXPRESSIONS / "window.txt").read_text().splitlines()

    found = [theirs(table, [expression])[0] for expression in expressions]

    assert compare(expressions, ours(expressions), found) == 1


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
def test_arithmetic_has_sparks_types(table: SparkSession, operator: str) -> None:
    """Arithmetic has Spark's result types: decimals and literals follow its rules, and text becomes a number."""
    pairs = [f"{one} {operator} {other}" for one, other in product(NUMBERS, NUMBERS) if {one, other} - {"s", "n"}]

    assert compare(pairs, ours(pairs), theirs(table, pairs)) == 1


@pytest.mark.parametrize(
    "form",
    [
        *("coalesce({0}, {1})", "case when b then {0} else {1} end", "array({0}, {1})"),
        *("array_append(array({0}), {1})", "array_union(array({0}), array({1}))"),
    ],
)
def test_common_types_are_those_of_spark(table: SparkSession, form: str) -> None:
    """Columns that have a common type get the same one from Spark."""
    pairs = [form.format(one, other) for one, other in product(TYPES, TYPES) if _together(one, other)]
    found = ours(pairs)
    known = [pair for pair, type_ in zip(pairs, found, strict=True) if type_ is not None]

    assert compare(known, [type_ for type_ in found if type_ is not None], theirs(table, known)) == 1
    assert len(known) > 80


def _together(one: str, other: str) -> bool:
    """Returns whether two columns can be compared, without text next to types to which Spark does not cast it."""
    found = common_type(TYPES[one], TYPES[other])
    uncomparable = {"m", "mi", "v", "cal", "sc"}
    return found is not None and not {one, other} & uncomparable and (one == other or "n" not in (one, other))


def test_a_union_has_the_common_type(table: SparkSession) -> None:
    """A union has the common type of its branches, whichever branch comes first."""
    pairs = [(one, other) for one, other in product(TYPES, TYPES) if one < other and "sc" not in (one, other)]
    types = {pair: common_type(TYPES[pair[0]], TYPES[pair[1]]) for pair in pairs}
    known = [pair for pair, type_ in types.items() if type_ is not None]
    first, second = (", ".join(f"{pair[side]} as c{place}" for place, pair in enumerate(known)) for side in (0, 1))

    schema: StructType = table.sql(f"select {first} from t union all select {second} from t").schema

    assert [field.dataType.simpleString() for field in schema] == [str(types[pair]) for pair in known]
    assert len(known) > 100


@pytest.mark.parametrize(
    "generator",
    [
        *("explode(ai)", "explode_outer(m)", "posexplode(ast)", "posexplode_outer(mi)", "inline(ast)"),
        *("inline_outer(ast)", "stack(2, 1, 'a', 2, null)", "stack(2, i4, d, s, i4, d)", "json_tuple(s, 'a', 'b')"),
        *("explode(split(s, ','))", "explode(from_json(s, 'array<struct<a:int>>'))", "explode(array(1, 2.5))"),
        *("inline(arrays_zip(ai, as_))", "explode(sequence(dt, dt))", "explode(map('a', 1))"),
    ],
)
@pytest.mark.parametrize("form", ["select {0} from t", "select g.* from t lateral view {0} g"])
def test_generators_have_sparks_columns(table: SparkSession, generator: str, form: str) -> None:
    """Generators give Spark's column names and types, in a select list and in LATERAL VIEW."""
    sql = form.format(generator)
    (tree,) = Spark().parse(sql)
    assert tree is not None
    lateral = tree.find(exp.Lateral)
    columns = generator_columns(tree.expressions[0] if lateral is None else lateral.this, column_type, sql)

    assert columns is not None
    schema = table.sql(sql).schema
    assert [(name, str(type_)) for name, type_ in columns] == [
        (field.name, field.dataType.simpleString()) for field in schema
    ]
