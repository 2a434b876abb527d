"""Comparison of expected and actual rows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sqlstream.state.runs.case_outcomes import ANY, Row
from sqlstream.testing.judge import RowComparison, types_of

TYPES = types_of((("device", "string"), ("average", "double"), ("tags", "array<struct<a:double>>"), ("n", "bigint")))


def kinds(expected: list[Row], actual: list[Row], *, ordered: bool = False) -> list[tuple[str, list[int]]]:
    """Returns how each row compares, and the columns that differ."""
    compared = RowComparison(TYPES, Decimal("1e-9"), ordered).compare(expected, actual)
    return [(str(row.kind), sorted(row.changed)) for row in compared]


def row(device: str | None = "a", average: object = Decimal(1), tags: object = None, n: object = 1) -> Row:
    """Returns a row with default values for what is not given."""
    return (device, average, tags, n)


def test_rows_have_no_order() -> None:
    """Rows are compared in any order, unless the case sets one."""
    one, other = row("a", n=7), row("b", Decimal(2))

    assert kinds([one, other], [other, one]) == [("same", []), ("same", [])]
    assert kinds([one, other], [other, one], ordered=True) == [("changed", [0, 1, 3]), ("changed", [0, 1, 3])]


def test_a_changed_row_is_paired_with_the_most_similar_one() -> None:
    """A changed row is paired with the most similar one; the rest is missing or unexpected."""
    expected = [row("a", n=1), row("b", n=5)]
    actual = [row("a", n=2), row("z", Decimal(9), [], 9)]

    assert kinds(expected, actual) == [("changed", [3]), ("missing", []), ("extra", [])]


def test_equal_rows_are_counted() -> None:
    """Equal rows are counted, so one row does not match two."""
    assert kinds([row(), row()], [row()]) == [("same", []), ("missing", [])]
    assert kinds([row()], [row(), row()]) == [("same", []), ("extra", [])]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Decimal(1), Decimal("1.0000000001"), True),
        (Decimal(1), Decimal("1.00001"), False),
        (Decimal("1e300"), Decimal("1.0000000001e300"), True),
        (Decimal(0), Decimal("1e-300"), False),
        ("NaN", "NaN", True),
        ("NaN", Decimal(1), False),
        (None, None, True),
        (None, Decimal(0), False),
        (ANY, Decimal(5), True),
        (ANY, None, True),
    ],
)
def test_floats_have_a_relative_tolerance(one: object, other: object, same: bool) -> None:
    """Floats are equal within a relative tolerance; null equals only null, a value not given equals anything."""
    assert kinds([row(average=one)], [row(average=other)]) == [("same", []) if same else ("changed", [1])]


def test_floats_within_lists_and_structs_have_the_same_tolerance() -> None:
    """Floats in lists and structs have the same tolerance, and integers have none."""
    near = [{"a": Decimal("2.0000000001")}, {"a": None}]

    assert kinds([row(tags=[{"a": Decimal(2)}, {"a": None}])], [row(tags=near)]) == [("same", [])]
    assert kinds([row(tags=[{"a": Decimal(2)}])], [row(tags=near)]) == [("changed", [2])]
    assert kinds([row(n=10**18)], [row(n=10**18 + 1)]) == [("changed", [3])]


def test_a_partial_row_leaves_exact_matches_to_full_rows() -> None:
    """A partial row does not take the only match of a full row, in whichever order they are written."""
    partial, full = row("a", n=ANY), row("a", n=1)

    assert kinds([partial, full], [row("a", n=1), row("a", n=2)]) == [("same", []), ("same", [])]
    assert kinds([partial, partial], [row("a", n=1)]) == [("same", []), ("missing", [])]


def test_true_is_no_number() -> None:
    """True and false do not equal numbers."""
    assert kinds([row(n=1)], [row(n=True)]) == [("changed", [3])]
