"""Expressions and plans of Spark as texts that are the same for the same meaning."""

from __future__ import annotations

from typing import Any

from sqlstream.state.signature.expressions import conjuncts, shown, text_of
from sqlstream.state.signature.operators import SOURCE, PlanReader
from sqlstream.state.signature.trees import read_tree

CATALYST = "org.apache.spark.sql.catalyst"
Json = list[dict[str, Any]]


def call(kind: str, *operands: Json, **fields: Any) -> Json:
    """Returns the JSON of an expression."""
    first = {"class": f"{CATALYST}.expressions.{kind}", "num-children": len(operands), **fields}
    return [first, *(node for operand in operands for node in operand)]


def column(number: int, name: str = "x") -> Json:
    """Returns the JSON of a column."""
    return call("AttributeReference", name=name, dataType="integer", exprId={"id": number})


def literal(value: object, type_: str = "integer") -> Json:
    """Returns the JSON of a literal."""
    return call("Literal", value=str(value), dataType=type_)


def text(nodes: Json, **columns: str) -> str:
    """Returns the text of an expression over columns a (1) and b (2)."""
    return shown(text_of(read_tree(nodes), {1: columns.get("a", "s.a"), 2: columns.get("b", "s.b")}))


def test_a_check_that_fails_the_query_is_no_part_of_a_value() -> None:
    """A source fails the query at a wrong time: the text of the column is the same with and without that check."""
    failure = call("Cast", call("RaiseError", literal("wrong", "string")))
    is_wrong = call("GreaterThan", column(1), literal(1))

    assert (
        text(call("CaseWhen", is_wrong, failure, column(1))) == text(call("If", is_wrong, failure, column(1))) == "s.a"
    )
    assert text(call("CaseWhen", is_wrong, literal(1), column(1))) != "s.a"
    assert text(call("CaseWhen", is_wrong, failure, is_wrong, literal(1), column(1))) != "s.a"


def test_operands_without_an_order_are_sorted() -> None:
    """`a + b` and `b + a` have the same text, `a - b` and `b - a` do not."""
    assert text(call("Add", column(2), column(1))) == text(call("Add", column(1), column(2))) == "s.a + s.b"
    assert text(call("Subtract", column(2), column(1))) == "s.b - s.a"


def test_comparisons_have_their_literal_on_the_right() -> None:
    """`1 < a` is `a > 1`, and two columns are compared with `<`."""
    assert text(call("LessThan", literal(1), column(1))) == "s.a > 1"
    assert text(call("GreaterThan", column(2), column(1))) == "s.a < s.b"


def test_an_expression_within_another_keeps_its_parentheses() -> None:
    """`(a + b) * 2` and `a + b * 2` differ, also if a column stands for `a + b`."""
    outer = call("Multiply", column(1), literal(2))

    assert text(outer, a="(s.a + s.b)") == "(s.a + s.b) * 2"
    assert text(call("Multiply", call("Add", column(1), column(2)), literal(2))) == "(s.a + s.b) * 2"


def test_conditions_have_no_order() -> None:
    """The conditions that AND combines are sorted, however they are nested."""
    first, second = call("IsNotNull", column(1)), call("GreaterThan", column(2), literal(1))

    left = conjuncts(read_tree(call("And", call("And", first, second), first)), {1: "s.a", 2: "s.b"})

    assert left == ("isnotnull(s.a)", "s.b > 1")


def test_a_cast_has_its_time_zone_where_it_matters() -> None:
    """A cast to a number is the same in all zones, one to a date is not."""
    number = call("Cast", column(1), dataType="long", timeZoneId="UTC", evalMode=None)
    date = call("Cast", column(1), dataType="date", timeZoneId="UTC", evalMode=None)

    assert text(number) == "cast(s.a as long)"
    assert text(date) == "cast(s.a as date, timeZoneId UTC)"


def test_variables_of_lambdas_have_no_names() -> None:
    """`x -> x + 1` and `y -> y + 1` are the same."""

    def increment(name: str, number: int) -> Json:
        variable = call("NamedLambdaVariable", name=name, exprId={"id": number}, dataType="integer")
        body = call("Add", variable, literal(1))
        return call("ArrayTransform", column(1), call("LambdaFunction", body, variable, hidden=False))

    assert text(increment("x", 7)) == text(increment("y", 8))


def plan(kind: str, *inputs: Json, **fields: Any) -> Json:
    """Returns the JSON of a plan."""
    first = {"class": f"{CATALYST}.plans.logical.{kind}", "num-children": len(inputs), **fields}
    return [first, *(node for each in inputs for node in each)]


def source(name: str, *columns: Json) -> Json:
    """Returns the JSON of a streaming source."""
    return plan("StreamingRelation", output=list(columns), **{SOURCE: name})


def alias(number: int, nodes: Json) -> Json:
    """Returns the JSON of a named expression."""
    return call("Alias", nodes, name="named", exprId={"id": number})


def aggregate(keys: list[Json], outputs: list[Json], below: Json) -> Json:
    """Returns the JSON of an aggregation."""
    return plan("Aggregate", below, groupingExpressions=keys, aggregateExpressions=outputs)


def total(number: int, nodes: Json) -> Json:
    """Returns the JSON of a sum."""
    return alias(number, call("AggregateExpression", call("Sum", nodes), isDistinct=False))


def test_an_aggregation_over_a_projection() -> None:
    """Projections vanish: keys and aggregates are expressions over the columns of the source, with their types."""
    below = plan(
        "Project",
        source("shop__orders", column(1, "kind"), column(2, "amount")),
        projectList=[column(1), alias(3, call("Multiply", column(2), literal(2)))],
    )
    reader = PlanReader()

    reader.read(read_tree(aggregate([column(1)], [column(1), total(4, column(3)), total(5, column(3))], below)))

    (operator,) = reader.operators
    assert operator.kind == "aggregation"
    assert operator.parts == {"keys": ("shop.orders.kind",), "aggregates": ("sum(2 * shop.orders.amount)",)}
    (rows,) = operator.inputs
    assert list(rows.lines()) == ["shop.orders(amount integer, kind integer)"]


def test_an_unknown_operator_keeps_all_its_fields() -> None:
    """What the reader does not know is compared as a whole."""
    below = plan("Mystery", source("shop__orders", column(1, "kind")), size=[literal(3)], child=0)
    reader = PlanReader()

    reader.read(read_tree(aggregate([column(1)], [column(1)], below)))

    (rows,) = reader.operators[0].inputs
    assert list(rows.lines()) == ["mystery 1: size [3]", "  shop.orders(kind integer)"]
