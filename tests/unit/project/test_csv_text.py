"""CSV text is read as in RFC 4180, with the location of every value."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.project.files.csv_text import BLANK_BEFORE, TEXT_AFTER, UNCLOSED, CsvText

VALUES = st.text(alphabet='ab"\n,; \t\u00e9\u2028\x85', max_size=5)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=5)
)


def read(text: str, delimiter: str = ",") -> list[list[str]]:
    """Returns the texts of all values, row by row."""
    parsed = CsvText(text, delimiter)
    return [[value.text for value in parsed.values(row)] for row in parsed.rows()]


@given(TABLES, st.sampled_from([",", ";", "\t", " ", "|", "]", "^"]), st.sampled_from(["\n", "\r\n"]))
def test_csv_of_python_is_read_back(table: list[list[str]], delimiter: str, line_end: str) -> None:
    """CSV that Python writes is read back with any values, delimiter and line ends, and no row has an odd width."""
    table = [["header"] * len(table[0]), *table]  # the first line end decides, so it must not be part of a value
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(table)
    text = stream.getvalue()
    assert read(text, delimiter) == table
    assert list(CsvText(text, delimiter).odd_rows(len(table[0]))) == []
    assert CsvText(text, delimiter).stray_line_end() is None


@given(st.text(alphabet='ab"\n\r, ', max_size=30), st.integers(1, 3))
def test_rows_of_another_width_are_found(text: str, width: int) -> None:
    """The fast search for rows of another width finds the same rows as reading row by row."""
    parsed = CsvText(text, ",")
    assert list(parsed.odd_rows(width)) == [row for row in parsed.rows() if row.fault or row.width != width]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('a,"b\nc,d\n', (UNCLOSED, 2)),
        ('a,"b"c,d\n', (TEXT_AFTER, 5)),
        ('a, "b"\n', (BLANK_BEFORE, 2)),
        ('a,"b" ,c\n', None),
        ('a,5" pipe\n', None),
    ],
)
def test_quoting_errors(text: str, fault: tuple[str, int] | None) -> None:
    """A quoting error is located at the wrong quote or text; unusual but valid quoting is accepted."""
    (row, *_) = CsvText(text, ",").rows()
    assert row.fault == fault


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("a\r\nb\nc\r\n", 4),
        ("a\nb\r\n", 3),
        ("a\nb\rc\n", 3),
        ("a\n\r\nb\n", 2),
        ("a\r\nb\n", None),
        ('a\r\n"b\nc"\r\n', None),
        ("a\rb\r", None),
    ],
)
def test_stray_line_ends(text: str, offset: int | None) -> None:
    """Outside of quotes a file has one kind of line end; only the last line of a Windows file may differ."""
    assert CsvText(text, ",").stray_line_end() == offset
