"""Locations in files, and the mapping from compiled text back to them."""

from __future__ import annotations

import pytest

from sqlstream.location import Location, Place, Segment, SourceMap, location_at, locator

MODEL = "models/orders.sql"
CALL = Location(MODEL, 2, 5)
SOURCE_MAP = SourceMap(
    (
        Segment(0, Place(Location(MODEL, 1, 1)), linear=True),
        Segment(7, Place(CALL), linear=False),
        Segment(12, Place(Location("macros/money.sql", 3, 9), (CALL,)), linear=True),
    )
)


def test_a_location_is_printed_as_editors_accept_it() -> None:
    """A location is printed as file, line and column with colons, as editors accept it."""
    assert str(Location(MODEL, 7, 14)) == "models/orders.sql:7:14"
    assert str(Location(MODEL)) == "models/orders.sql:1:1"


def test_locations_order_by_file_then_line_then_column() -> None:
    """Locations are ordered by file, line and column as numbers, so line 10 comes after line 9."""
    places = [Location("b.sql"), Location("a.sql", 10), Location("a.sql", 9, 2), Location("a.sql", 9, 1)]

    assert sorted(places) == [
        Location("a.sql", 9, 1),
        Location("a.sql", 9, 2),
        Location("a.sql", 10),
        Location("b.sql"),
    ]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, Place(Location(MODEL, 1, 1))),
        (6, Place(Location(MODEL, 1, 7))),
        (7, Place(CALL)),
        (11, Place(CALL)),
        (12, Place(Location("macros/money.sql", 3, 9), (CALL,))),
        (15, Place(Location("macros/money.sql", 3, 12), (CALL,))),
    ],
)
def test_columns_advance_only_in_template_text(offset: int, expected: Place) -> None:
    """Columns advance within template text; all output of an expression has the expression's location."""
    assert SOURCE_MAP.locate(offset) == expected


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_end_as_in_editors(line_end: str) -> None:
    """A newline, a carriage return or both end a line; an offset within the pair is the end of the line."""
    text = line_end.join(("ab", "", "cd"))
    assert location_at("a.csv", text, text.index("d")) == Location("a.csv", 3, 2)
    assert location_at("a.csv", text, 2) == Location("a.csv", 1, 3)
    assert location_at("a.csv", text, 1 + len(line_end)) == Location(
        "a.csv", 1, len(line_end) + 2 - (line_end == "\r\n")
    )


def test_a_location_is_one_printable_line() -> None:
    """A location is one printable line, even if a file name has line breaks or terminal codes."""
    assert str(Location("models/a\nb\x1b[2J\u202e.sql")) == "models/a b [2J .sql:1:1"


@pytest.mark.parametrize(("offset", "line", "column"), [(0, 1, 1), (2, 1, 3), (3, 2, 1), (4, 3, 1), (6, 3, 3)], ids=str)
def test_an_offset_in_a_file_has_a_line_and_a_column(offset: int, line: int, column: int) -> None:
    """A line break belongs to the line that it ends, and the end of the text is a valid location."""
    assert location_at("a.yml", "ab\n\ncd", offset) == Location("a.yml", line, column)


def test_many_locations_of_one_text() -> None:
    """Many locations of one text are the same as single ones, with all kinds of line ends."""
    text = "ab\r\n\rc\n\nd\r\ne"
    locate = locator("a.csv", text)

    assert [locate(at) for at in range(len(text) + 1)] == [
        location_at("a.csv", text, at) for at in range(len(text) + 1)
    ]
