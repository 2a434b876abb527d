"""How the output columns of a query differ from those before, in any sink."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.state.changed_columns import column_differences, contract_breaks
from sqlstream.state.ledger import OutputColumn
from tests.support.identities import STATEFUL


def columns(text: str) -> tuple[OutputColumn, ...]:
    """Returns columns, such as `id int, city string`."""
    pairs = (column.split(" ", 1) for column in text.split(", ") if column)
    return tuple(OutputColumn(*pair) for pair in pairs)


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        ("id int", "id int", []),
        ("id int", "ID int", []),
        ("id int", "id bigint", ["column `id` was int, and is now bigint"]),
        ("id int", "id int, city string", ["column `city` is new"]),
        ("id int, city string", "id int", ["column `city` was removed"]),
        ("id int, a int", "id int, b int", ["column `a` was removed, or renamed to `b`", "column `b` is new"]),
        ("id int, a int", "id int, b string", ["column `a` was removed", "column `b` is new"]),
        ("a int, id int", "id int, b int", ["column `a` was removed", "column `b` is new"]),
        ("a int, b int", "b int, a int", []),
    ],
)
def test_each_difference_has_a_text(before: str, after: str, texts: list[str]) -> None:
    """Removed columns, new types and new columns differ; the order and the case of names do not."""
    assert [each.text for each in column_differences(columns(before), columns(after))] == texts


def test_only_new_columns_break_no_reader() -> None:
    """A removed column and another type may break readers, a new column does not."""
    found = column_differences(columns("a int, b int"), columns("b string, c int"))

    assert [(each.name, each.breaks_readers) for each in found] == [("a", True), ("b", True), ("c", False)]


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        ("id int not null, a int", "id int not null, a int, b int", []),
        ("id int", "ID int not null", []),
        ("id int not null", "id int", ["column `id` can be null"]),
        ("id int, a int", "id bigint", ["column `id` was int, and is now bigint", "column `a` was removed"]),
        ("id int, a int, b int", "b int, id int, c int", [
            "column `a` was removed", "its columns had the order id, b, and now have b, id",
        ]),
        ("id int", "", ["it is no longer enforced"]),
        ("", "id int", []),
    ],
)  # fmt: skip
def test_what_breaks_a_contract(before: str, after: str, texts: list[str]) -> None:
    """A removed column, another type, another order, and nulls that were not allowed break a contract."""
    sides = [{column.name: column.type for column in columns(text)} for text in (before, after)]
    old, new = (replace(STATEFUL, contract=each) for each in sides)

    assert list(contract_breaks(old, new)) == texts
    assert contract_breaks(replace(STATEFUL, contract=None), new) == ()
