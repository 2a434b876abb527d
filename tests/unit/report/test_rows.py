"""Rows as a table, JSON and CSV."""

from __future__ import annotations

import json
from decimal import Decimal

from sqlstream.report.rows import json_text, rows_csv, rows_json, rows_text
from sqlstream.state.shown_rows import ShownColumn, ShownRows


def shown(*rows: tuple[object, ...], columns: str = "id bigint, text string", limit: int = 5) -> ShownRows:
    """Returns rows of a model `m`."""
    pairs = (column.split(" ") for column in columns.split(", "))
    return ShownRows("m", "model.p.m", tuple(ShownColumn(*pair) for pair in pairs), rows, limit)


def test_the_title_shows_whether_the_limit_was_reached() -> None:
    """The title says whether the limit was reached, not reached, or there are no rows."""
    titles = [rows_text(shown(*[(1, "a")] * count, limit=2), None).split("\n")[0] for count in (2, 1, 0)]

    assert titles == ["m, the first 2 rows", "m, 1 row", "m, no rows"]


def test_values_are_text_and_nested_ones_json() -> None:
    """Values become text and nested values JSON; a decimal keeps its zeros, and null is the word null."""
    text = rows_text(
        shown((Decimal("1.50"), {"a": [1, None]}), (2, None), columns="d decimal(3,2), s struct<...>"), None
    )

    assert text.split("\n")[3:] == ['1.50   {"a": [1, null]}', "   2   null"]


def test_wide_cells_are_cut_before_columns_are_left_out() -> None:
    """The widest cells are cut first; columns that still do not fit are left out and named."""
    row = (1, "x" * 100, "y" * 30, "z" * 30)
    columns = "id bigint, x string, y string, z string"

    lines = rows_text(shown(row, columns=columns), 60).split("\n")
    assert max(map(len, lines)) <= 60
    assert [cell[-1] for cell in lines[3].split()] == ["1", "…", "…", "…"]
    assert len(lines) == 4

    lines = rows_text(shown(row, columns=columns), 40).split("\n")
    assert max(map(len, lines)) <= 40
    assert lines[-1] == "1 more column: z"


def test_duplicate_columns_are_numbered_in_json() -> None:
    """In JSON, the second of two columns with the same name gets a number."""
    found = json.loads(rows_json([shown((1, "a"), columns="id bigint, id string")]))

    assert found["results"][0]["rows"] == [{"id": 1, "id_2": "a"}]
    assert found["succeeded"] is True


def test_numbers_keep_their_digits_in_json() -> None:
    """In JSON, a long decimal keeps all digits, which a float would lose."""
    assert json_text({"a": Decimal("12345678901234567890.123456789")}) == '{"a": 12345678901234567890.123456789}'


def test_csv_has_empty_text_for_null() -> None:
    """In CSV, null is empty and nested values are quoted JSON."""
    assert rows_csv(shown((1, 'a "b"'), (2, None))) == 'id,text\n1,"a ""b"""\n2,'
