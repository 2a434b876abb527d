"""Columns with a wider type than in an earlier signature: the uses with which the state stays the same."""

from __future__ import annotations

from typing import Any

import pytest

from sqlstream.project.types.ddl import known_type
from sqlstream.state.signature.compare import state_differences
from sqlstream.state.signature.operators import SOURCE, PlanReader
from sqlstream.state.signature.signature import StateSignature
from sqlstream.state.signature.trees import read_tree
from sqlstream.state.signature.wider_types import is_wider, types_in

CATALYST = "org.apache.spark.sql.catalyst"
Json = list[dict[str, Any]]
NUMBERS = ("integer", "long")
SKU, LOT = "struct<sku string, price integer>", "struct<lot long, sku string, price integer>"
WIDER_PRICE = "struct<sku string, price long>"


def call(kind: str, *operands: Json, **fields: Any) -> Json:
    """Returns the JSON of an expression."""
    first = {"class": f"{CATALYST}.expressions.{kind}", "num-children": len(operands), **fields}
    return [first, *(node for operand in operands for node in operand)]


def column(name: str, type_: str, number: int = 1) -> Json:
    """Returns the JSON of a column."""
    return call("AttributeReference", name=name, dataType=type_, exprId={"id": number})


def literal(value: object, type_: str) -> Json:
    """Returns the JSON of a literal."""
    return call("Literal", value=str(value), dataType=type_)


def aggregate(function: str, operand: Json) -> Json:
    """Returns the JSON of an aggregate function in a select list."""
    return call("Alias", call("AggregateExpression", call(f"aggregate.{function}", operand)), exprId={"id": 9})


def differences(
    old: str, new: str, use: Any, *, where: bool = False, key: bool = False, texts: tuple[str, ...] = ("s.t",)
) -> int:
    """Returns how many differences of the state are found after a column `x` of the source `s.t` changed from the type
    `old` to `new`. `use` makes the expression over it, which is counted, or a condition, or a key. Numbers of the
    sources in `texts` are texts.
    """

    def signature(type_: str, before: StateSignature | None) -> StateSignature:
        expression = use(type_)
        rows: Json = [{"class": "a.S", "num-children": 0, "output": [column("x", type_)], SOURCE: "s__t"}]
        if where:
            rows = [{"class": "a.Filter", "num-children": 1, "condition": expression}, *rows]
        plan = {
            "class": "a.Aggregate",
            "num-children": 1,
            "groupingExpressions": [expression] if key else [],
            "aggregateExpressions": [] if key or where else [expression],
        }
        reader = PlanReader(types=before.types if before else {}, texts=texts)
        reader.read(read_tree([plan, *rows]))
        return StateSignature(tuple(reader.operators), "update", (), "4.3.0")

    before = signature(old, None)
    return len(state_differences(before, signature(new, before), ()))


@pytest.mark.parametrize(
    ("types", "function", "count"),
    [
        (NUMBERS, "Sum", 0),
        (NUMBERS, "Average", 0),
        (NUMBERS, "Count", 0),
        (("byte", "short"), "Sum", 0),
        (NUMBERS, "Max", 1),
        (NUMBERS, "ApproximatePercentile", 1),
        (("long", "integer"), "Sum", 1),
        (("long", "integer"), "Count", 1),
        (("string", "integer"), "Count", 1),
        (("decimal(10,2)", "decimal(12,2)"), "Count", 0),
        (("decimal(10,2)", "decimal(12,2)"), "Sum", 1),
        (("decimal(10,2)", "decimal(10,3)"), "Count", 1),
        (("date", "timestamp"), "Count", 0),
        (("date", "timestamp"), "Max", 1),
        (("float", "double"), "Count", 0),
        (("float", "double"), "Sum", 1),
        ((SKU, LOT), "Count", 0),
        ((SKU, LOT), "First", 1),
        ((SKU, SKU.replace("sku string", "sku string not null")), "Count", 1),
    ],
)
def test_aggregates_of_a_wider_column(types: tuple[str, str], function: str, count: int) -> None:
    """Aggregates keep their state where Spark stores the same type and adds the same values to it."""
    assert differences(*types, lambda type_: aggregate(function, column("x", type_))) == count


def test_a_float_in_a_file_is_the_same_as_a_double() -> None:
    """Numbers in texts have more digits than a float, so a sum of floats differs from one of doubles."""
    assert differences("float", "double", lambda type_: aggregate("Sum", column("x", type_)), texts=()) == 0


@pytest.mark.parametrize(
    ("types", "condition", "count"),
    [
        (NUMBERS, lambda t: call("GreaterThan", column("x", t), literal(5, t)), 0),
        (NUMBERS, lambda t: call("LessThan", literal(5, t), column("x", t)), 0),
        (NUMBERS, lambda t: call("GreaterThan", column("x", t), literal(5 if t == "integer" else 6, t)), 1),
        (NUMBERS, lambda t: call("In", column("x", t), literal(5, t), literal(7, t)), 0),
        (NUMBERS, lambda t: call("InSet", column("x", t), hset="5, 7"), 0),
        (NUMBERS, lambda t: call("IsNotNull", column("x", t)), 0),
        (NUMBERS, lambda t: call("EqualTo", column("x", t), column("x", t)), 1),
        (NUMBERS, lambda t: call("EqualTo", call("Add", column("x", t), literal(1, t)), literal(5, t)), 1),
        (("decimal(10,2)", "decimal(12,2)"), lambda t: call("LessThan", column("x", t), literal("5.00", t)), 0),
        (("decimal(10,2)", "decimal(12,3)"), lambda t: call("LessThan", column("x", t), literal("5.00", t)), 1),
        (("float", "double"), lambda t: call("LessThan", column("x", t), literal("0.5", t)), 1),
        (("date", "timestamp"), lambda t: call("LessThan", column("x", t), literal("2024-01-01", t)), 1),
    ],
)
def test_conditions_on_a_wider_column(types: tuple[str, str], condition: Any, count: int) -> None:
    """Comparisons with literals select the same rows, as long as all values are the same."""
    assert differences(*types, condition, where=True) == count


@pytest.mark.parametrize(
    ("types", "key", "count"),
    [
        (NUMBERS, lambda t: column("x", t), 1),
        (NUMBERS, lambda t: call("Cast", column("x", t), dataType="string"), 0),
        (NUMBERS, lambda t: call("Cast", column("x", t), dataType="binary"), 1),
        (NUMBERS, lambda t: call("Upper", call("Cast", column("x", t), dataType="string")), 0),
        (NUMBERS, lambda t: call("Murmur3Hash", column("x", t)), 1),
        (("float", "double"), lambda t: call("Cast", column("x", t), dataType="string"), 1),
        (("decimal(10,2)", "decimal(12,3)"), lambda t: call("Cast", column("x", t), dataType="string"), 1),
        ((SKU, LOT), lambda t: call("GetStructField", column("x", t), name="sku"), 0),
        ((SKU, LOT), lambda t: call("GetStructField", column("x", t), name="price"), 0),
        ((SKU, LOT), lambda t: call("GetStructField", column("x", t), name="SKU"), 0),
        ((SKU, WIDER_PRICE), lambda t: call("GetStructField", column("x", t), name="sku"), 0),
        ((SKU, WIDER_PRICE), lambda t: call("GetStructField", column("x", t), name="price"), 1),
        ((SKU, LOT), lambda t: column("x", t), 1),
        (
            (f"array<{SKU}>", f"array<{LOT}>"),
            lambda t: call("GetStructField", call("GetArrayItem", column("x", t), literal(0, "integer")), name="sku"),
            0,
        ),
        (
            (f"map<string, {SKU}>", f"map<string, {LOT}>"),
            lambda t: call("ElementAt", column("x", t), literal("a", "string")),
            1,
        ),
        (
            ("array<integer>", "array<long>"),
            lambda t: call("Upper", call("GetArrayItem", column("x", t), literal(0, "integer"))),
            1,
        ),
        ((SKU, LOT), lambda t: call("StructsToJson", column("x", t)), 1),
        (
            (f"struct<item {SKU}>", f"struct<item {LOT}>"),
            lambda t: call("GetStructField", call("GetStructField", column("x", t), name="item"), name="sku"),
            0,
        ),
        (
            ("struct<`a.b` integer>", "struct<`a.b` integer, c integer>"),
            lambda t: call("GetStructField", column("x", t), name="`a.b`"),
            0,
        ),
    ],
)
def test_keys_of_a_wider_column(types: tuple[str, str], key: Any, count: int) -> None:
    """A key stays the same if it has the same type and the same values: a field of a struct, a cast of a number."""
    assert differences(*types, key, key=True) == count


def test_an_item_within_an_expression_has_its_type() -> None:
    """The item that is added to something is not the whole operand."""

    def total(type_: str) -> Json:
        item = call("GetArrayItem", column("x", type_), literal(0, "integer"))
        return aggregate("Sum", call("Add", call("Upper", literal("a", "string")), item))

    types = ("array<integer>", "array<long>")
    assert differences(*types, total) == 1
    assert differences(*types, lambda t: aggregate("Sum", call("GetArrayItem", column("x", t)))) == 0


@pytest.mark.parametrize("kind", ["Sum", "Max"])
def test_a_field_within_a_struct_gets_wider(kind: str) -> None:
    """A field of a struct is like a column."""
    count = differences(
        SKU, WIDER_PRICE, lambda t: aggregate(kind, call("GetStructField", column("x", t), name="price"))
    )

    assert count == (kind == "Max")


def test_a_field_of_the_items_of_a_list() -> None:
    """Where the field is among the fields of an item does not count."""

    def skus(type_: str) -> Json:
        position = 1 if "lot" in type_ else 0
        field = {"name": "sku", "dataType": "string"}
        details = {"field": "sku string" if field else "", "ordinal": position, "numFields": 2 + position}
        return call("GetArrayStructFields", column("x", type_), **details)

    assert differences(f"array<{SKU}>", f"array<{LOT}>", skus, key=True) == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "double", False),
        ("float", "double", True),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("date", "timestamp_ntz", True),
        ("array<int>", "array<bigint>", True),
        ("map<string, int>", "map<string, bigint>", True),
        ("map<int, int>", "map<bigint, int>", False),
        ("struct<a int>", "struct<b int, a int>", True),
        ("struct<a int, b int>", "struct<a int>", False),
    ],
)
def test_which_types_are_wider(old: str, new: str, *, expected: bool) -> None:
    """A wider type has all values of the other one, and null for no other ones."""
    assert is_wider(known_type(old), known_type(new)) == expected


def test_types_in_the_line_of_a_source() -> None:
    """Types have commas and names in backticks."""
    line = "shop.orders(`a, b` decimal(10,2), item struct<sku string, `x y` map<string, long>>, n integer)"

    assert types_in(line) == {
        "`a, b`": "decimal(10,2)",
        "item": "struct<sku string, `x y` map<string, long>>",
        "n": "integer",
    }
    assert types_in("shop.orders()") == {}
