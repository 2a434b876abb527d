"""How large an expression is in the JSON of Spark's plans, in which each branch of a CASE occurs twice."""

from __future__ import annotations

from sqlstream.spark.queries.state_signature import MOST_CHARACTERS, _json_size


def nested(depth: int) -> str:
    """Returns an expression with CASE within CASE, as Spark writes it."""
    return "CASE WHEN (a > 1) THEN " * depth + "b" + " END" * depth


def test_a_flat_expression_is_as_large_as_its_text() -> None:
    """Without CASE, nothing is repeated."""
    assert _json_size("(a + b)") == len("(a + b)")


def test_a_nested_expression_doubles_with_each_level() -> None:
    """Ten levels can be read, thirty cannot."""
    assert _json_size(nested(11)) > 1.9 * _json_size(nested(10))
    assert _json_size(nested(10)) < MOST_CHARACTERS < _json_size(nested(30))


def test_many_expressions_beside_each_other_are_read() -> None:
    """A CASE after another one does not double."""
    assert _json_size(" + ".join([nested(1)] * 1000)) < 4 * len(" + ".join([nested(1)] * 1000))
