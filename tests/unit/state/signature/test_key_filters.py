"""Filters on keys that a changed query adds: the state has rows of other keys, which must stay unused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.state.signature.compare import state_differences
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature

ORDERS = InputRows("shop.orders(id integer, k string, v integer)")
REFUNDS = InputRows("shop.refunds(k string, v integer)")
KEYS = ("shop.orders.k", "shop.orders.id % 3")
COUNT = StateOperator("aggregation", {"keys": KEYS, "aggregates": ("count(1)",)}, (ORDERS,))
ONCE = StateOperator("deduplication", {"keys": KEYS}, (ORDERS,))
JOIN = StateOperator(
    "join",
    {
        "type": ("Inner",),
        "keys": ("shop.orders.k = shop.refunds.k",),
        "condition": (),
        "left columns": ("shop.orders.v",),
        "right columns": ("shop.refunds.v",),
    },
    (ORDERS, REFUNDS),
)
ON_KEY = "not('a' = shop.orders.k)"


def query(operator: StateOperator, mode: str = "update", watermarks: tuple[str, ...] = ()) -> StateSignature:
    """Returns the signature of a query with one operator."""
    return StateSignature((operator,), mode, watermarks, "4.3.0")


def filtered(operator: StateOperator, *conditions: str) -> StateOperator:
    """Returns an operator whose inputs are filtered, each by its condition; an empty one filters nothing."""
    inputs = tuple(
        InputRows(f"where {condition}", (rows,)) if condition else rows
        for rows, condition in zip(operator.inputs, conditions, strict=True)
    )
    return replace(operator, inputs=inputs)


def is_safe(old: StateSignature, new: StateSignature) -> bool:
    """Returns whether the state of `old` is right for `new`."""
    return not state_differences(old, new, {"shop.orders"})


@pytest.mark.parametrize("operator", [COUNT, ONCE])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (ON_KEY, True),
        ("isnotnull(shop.orders.k) and startswith(shop.orders.k, 'x and y')", True),
        ("(shop.orders.id % 3) > 1", True),
        ("('a' = shop.orders.k) or ((shop.orders.id % 3) > 1)", True),
        ("in(shop.orders.k, 'a', 'b')", True),
        ("in(shop.orders.k, 'a', 'b', value 0, list [1, 2])", True),
        ("not(in(shop.orders.k, 'a', null string, value 0, list [1, 2])) and isnotnull(shop.orders.k)", True),
        ("(in((shop.orders.id % 3), 1, 2, value 0, list [1, 2])) or isnull(shop.orders.k)", True),
        ("inset(shop.orders.k, hset [a, 'b, c', 'd''e'])", True),
        ("not(inset(shop.orders.id % 3, hset [1, 2, -3]))", True),
        ("shop.orders.k >= 'a' and shop.orders.k <= 'c'", True),
        ("in(shop.orders.v, 1, 2, value 0, list [1, 2])", False),
        ("in(shop.orders.k, 'a', shop.orders.v, value 0, list [1, 2])", False),
        ("inset(shop.orders.v, hset [1, 2])", False),
        ("inset(shop.orders.k, hset [0.0, 1.0])", False),
        ("inset(shop.orders.k, hset [-0.0, 1.0])", False),
        ("('a' = shop.orders.k) or (shop.orders.v > 1)", False),
        ("shop.orders.id > 1", False),
        ("shop.orders.kind > 1", False),
        ("shop.orders.k.field > 1", False),
        ("shop.orders.v > shop.orders.k", False),
        ("('A' = upper(shop.orders.k)) and isnotnull(shop.orders.k)", True),
        ("'A' = upper(shop.orders.v)", False),
        ("length(shop.orders.k) > 1", False),
        ("startswith(shop.orders.k, string collate UTF8_LCASE a)", False),
        ("count(1) > 2", False),
    ],
)
def test_a_filter_that_tests_only_keys(operator: StateOperator, condition: str, *, expected: bool) -> None:
    """Comparisons of whole keys with literals, in any letter case, leave all other groups complete."""
    assert is_safe(query(operator), query(filtered(operator, condition))) is expected
    assert not is_safe(query(filtered(operator, condition)), query(operator))


def test_a_filter_beside_the_old_one() -> None:
    """The old conditions must stay."""
    old, new, other = (
        query(filtered(COUNT, text))
        for text in ("shop.orders.v > 1", f"{ON_KEY} and shop.orders.v > 1", f"{ON_KEY} and shop.orders.v > 2")
    )

    assert is_safe(old, new)
    assert not is_safe(old, other)


def test_complete_mode_returns_all_groups_of_the_state() -> None:
    """A group that was filtered out later must not come back: not now, and not when the mode changes later."""
    new = filtered(COUNT, ON_KEY)

    assert not is_safe(query(COUNT, "complete"), query(new, "complete"))
    assert not is_safe(query(COUNT), query(new, "complete"))
    assert not is_safe(query(new), query(new, "complete"))
    assert is_safe(query(new, "complete"), query(new))
    assert is_safe(query(COUNT), query(COUNT, "complete"))


def test_another_source_could_have_rows_of_the_other_keys() -> None:
    """The groups that a filter left in the state would get rows of a source without that filter."""
    old, other = filtered(COUNT, ON_KEY), filtered(COUNT, "shop.orders.v > 1")
    wider = [
        replace(
            COUNT, inputs=(InputRows("union", (InputRows("select k", each.inputs), InputRows("select k", (REFUNDS,)))),)
        )
        for each in (old, other)
    ]

    assert not is_safe(query(old), query(wider[0]))
    assert is_safe(query(other), query(wider[1]))


def test_a_watermark_may_have_been_moved_by_the_filtered_rows() -> None:
    """Spark filters before it computes the watermark, so that of the checkpoint can be later."""
    watermarks = ("watermark shop.orders.ts, 1 hours",)
    joined = filtered(JOIN, ON_KEY, "not('a' = shop.refunds.k)")

    assert not is_safe(query(COUNT, "update", watermarks), query(filtered(COUNT, ON_KEY), "update", watermarks))
    assert not is_safe(query(JOIN, "append", watermarks), query(joined, "append", watermarks))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (ON_KEY, "not('a' = shop.refunds.k)", True),
        (ON_KEY, "not('b' = shop.refunds.k)", False),
        (
            "in(shop.orders.k, 'a', 'b', value 0, list [1, 2])",
            "in(shop.refunds.k, 'a', 'b', value 0, list [1, 2])",
            True,
        ),
        ("inset(shop.orders.k, hset [a, b])", "inset(shop.refunds.k, hset [a, b])", True),
        ("inset(shop.orders.k, hset [a, b])", "inset(shop.refunds.k, hset [a, c])", False),
        (ON_KEY, "", False),
        ("shop.orders.v > 1", "shop.refunds.v > 1", False),
    ],
)
def test_both_sides_of_a_join_have_the_same_filter(left: str, right: str, *, expected: bool) -> None:
    """Rows in the state of one side meet rows of the other side, unless both lack the key."""
    assert is_safe(query(JOIN, "append"), query(filtered(JOIN, left, right), "append")) is expected


def test_an_outer_join_returns_rows_of_all_keys() -> None:
    """Rows without a match come from the state."""
    outer = replace(JOIN, parts={**JOIN.parts, "type": ("LeftOuter",)})

    assert not is_safe(query(outer, "append"), query(filtered(outer, ON_KEY, "not('a' = shop.refunds.k)"), "append"))


def test_an_inner_join_without_input_needs_no_state() -> None:
    """Spark has found that the conditions of the changed join exclude each other, so it returns nothing."""
    nothing = filtered(JOIN, "false", "false")

    assert is_safe(query(JOIN, "append"), query(nothing, "append"))
    assert not is_safe(query(nothing, "append"), query(JOIN, "append"))
    outer = replace(nothing, parts={**JOIN.parts, "type": ("LeftOuter",)})
    assert not is_safe(query(replace(outer, inputs=JOIN.inputs), "append"), query(outer, "append"))
