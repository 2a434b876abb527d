"""CSV text as rows with locations, read as by Spark's reader: RFC 4180, with any single delimiter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t"

UNCLOSED, TEXT_AFTER, BLANK_BEFORE = "unclosed", "text after", "blank before"
"""The kinds of faults: a quote without an end, text after a closing quote, and blanks before an opening one, which make
the quotes part of the value.
"""


class Fault(NamedTuple):
    """A fault in a row's quotes (one of the kinds above), and the offset of its first character."""

    kind: str
    offset: int


class Row(NamedTuple):
    """One row: text[start:end], its line end up to `stop`, the number of its values (`width`), and the first fault of
    its quotes.
    """

    start: int
    end: int
    stop: int
    width: int
    fault: Fault | None


class Value(NamedTuple):
    """One value of a row: its text without quotes, its offset, and whether it is in quotes."""

    text: str
    offset: int
    is_quoted: bool


@dataclass(frozen=True)
class CsvText:
    """The text of a CSV file, without a byte order mark and with its original line ends."""

    text: str
    delimiter: str

    def rows(self) -> Iterator[Row]:
        """Yields the rows that are not blank, the header first. Spark skips empty lines."""
        return (row for row in self._lines() if row.end > row.start)

    def odd_rows(self, count: int) -> Iterator[Row]:
        """Yields the rows that have a fault, or do not have `count` values."""
        sound = self._sound_rows(count)
        offset = 0
        while offset < len(self.text):
            row = self._row_at(offset)
            if row.fault or (row.width != count and row.end > row.start):
                yield row
            match = sound.match(self.text, row.stop)
            offset = match.end() if match else row.stop

    def values(self, row: Row) -> tuple[Value, ...]:
        """Returns the values of one of the rows."""
        return tuple(self._read(match) for match in self._matches(row.start))

    @cached_property
    def line_end(self) -> str:
        """The line end that Spark uses: the first in the file, inside or outside of quotes."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"

    def stray_line_end(self) -> int | None:
        """Returns the offset of the first line end outside of quotes that is not `line_end`, None if there is none.

        Spark reads such a line end as a part of the value, except for the last one of a file with Windows line ends.
        """
        returns, breaks = self.text.count("\r"), self.text.count("\n")
        if not returns or not breaks or returns == breaks == self.text.count("\r\n"):
            return None
        strays = (row.end for row in self._lines() if self.text[row.end : row.stop] not in (self.line_end, ""))
        first = next(strays, None)
        is_last = first is not None and self.line_end == "\r\n" and self.text[first:] == "\n"
        return None if is_last else first

    @cached_property
    def _value(self) -> re.Pattern[str]:
        other = f"[^{re.escape(self.delimiter)}\r\n]*+"
        return re.compile(rf'"(?P<quoted>(?:[^"]++|"")*+)(?P<close>"?)(?P<rest>{other})|(?P<plain>{other})')

    def _lines(self) -> Iterator[Row]:
        offset = 0
        while offset < len(self.text):
            row = self._row_at(offset)
            yield row
            offset = row.stop

    def _matches(self, offset: int) -> Iterator[re.Match[str]]:
        """Yields a match for each value of the row that begins at `offset`."""
        while True:
            match = self._value.match(self.text, offset)
            if match is None:
                raise AssertionError("the pattern matches any text")
            yield match
            if not self.text.startswith(self.delimiter, match.end()):
                return
            offset = match.end() + 1

    def _row_at(self, start: int) -> Row:
        # Most lines have no quotes.
        plain = _UNQUOTED_LINE.match(self.text, start)
        if plain is not None:
            return Row(start, plain.end(1), plain.end(), self.text.count(self.delimiter, start, plain.end(1)) + 1, None)
        count, end = 0, start
        fault: Fault | None = None
        for match in self._matches(start):
            count, end = count + 1, match.end()
            fault = fault or _fault(match)
        line_end = _LINE_END.match(self.text, end)
        return Row(start, end, line_end.end() if line_end else end, count, fault)

    def _sound_rows(self, count: int) -> re.Pattern[str]:
        """A pattern for any number of correct rows at once: Python is too slow to check each of a million."""
        delimiter, blanks = re.escape(self.delimiter), _BLANKS.replace(self.delimiter, "")
        value = rf'(?:"(?:[^"]++|"")*+"[{blanks}]*+|(?![{blanks}]*")[^{delimiter}\r\n]*+)'
        row = rf"{value}(?:{delimiter}{value}){{{count - 1}}}"
        return re.compile(rf"(?:(?:{row})?(?:\r\n|\r|\n))*+")

    def _read(self, match: re.Match[str]) -> Value:
        if match["quoted"] is None:
            return Value(match["plain"], match.start(), is_quoted=False)
        text = match["quoted"].replace('""', '"')
        # Spark reads a line end of two characters within quotes as one
        text = text if self.line_end == "\n" else text.replace(self.line_end, "\n")
        return Value(text, match.start(), is_quoted=True)


_UNQUOTED_LINE = re.compile(r'([^"\r\n]*+)(?:\r\n|\r|\n|\Z)')


def _fault(match: re.Match[str]) -> Fault | None:
    if match["quoted"] is None:
        bare = match["plain"].lstrip(_BLANKS)
        return Fault(BLANK_BEFORE, match.start()) if bare.startswith('"') else None
    if not match["close"]:
        return Fault(UNCLOSED, match.start())
    return Fault(TEXT_AFTER, match.start("rest")) if match["rest"].strip(_BLANKS) else None
