"""Marks in rendered text: the begin and end of template text and of an expression's output."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlstream.location import Location, Place, Segment

TEXT, BEGIN, END = "\U0010f800", "\U0010f801", "\U0010f802"
"""The kinds of marks: template text follows; an expression's output begins; it ends.

Marks and the digits of their numbers are private-use characters, which no filter changes or treats as a word.
"""

ZERO = 0x10F840
DIGITS = 4
"""A mark's number has four digits to base 64, enough for 16 million places."""

MARK = re.compile(f"([{TEXT}{BEGIN}])([\U0010f840-\U0010f87f]{{{DIGITS}}})|{END}")

MARK_LENGTH = 1 + DIGITS


def numbered(kind: str, number: int) -> str:
    """Returns the mark of a kind with a number."""
    return kind + "".join(chr(ZERO + (number >> 6 * digit & 63)) for digit in reversed(range(DIGITS)))


def number_of(mark: str) -> int:
    """Returns the number of a mark made by `numbered`."""
    number = 0
    for letter in mark[1:]:
        number = number << 6 | ord(letter) - ZERO
    return number


def without_marks(text: str) -> str:
    """Returns the text without marks."""
    return MARK.sub("", text)


def read_marks(marked: str, place_of: Callable[[int], Location], start: Location) -> tuple[str, tuple[Segment, ...]]:
    """Returns the text without marks, and its segments. `place_of` returns the location of a mark's number. `start` is
    the location of unmarked text.
    """
    reader = _Reader(place_of, start)
    at = 0
    for match in MARK.finditer(marked):
        reader.text(marked[at : match.start()])
        reader.mark(match.group())
        at = match.end()
    reader.text(marked[at:])
    return "".join(reader.pieces), tuple(reader.segments) or (Segment(0, Place(start), linear=False),)


class _Reader:
    """Reads marked text from the beginning, with a stack of open expressions."""

    def __init__(self, place_of: Callable[[int], Location], start: Location) -> None:
        self.pieces: list[str] = []
        self.segments: list[Segment] = []
        self._place_of = place_of
        self._open: list[Location] = []
        self._place = Place(start)
        self._linear = False
        self._start = start
        self._length = 0

    def text(self, text: str) -> None:
        """Adds the text up to the next mark."""
        if not text:
            return
        previous = self.segments[-1] if self.segments else None
        if self._linear or previous is None or previous.linear or previous.place != self._place:
            self.segments.append(Segment(self._length, self._place, self._linear))
        self.pieces.append(text)
        self._length += len(text)

    def mark(self, mark: str) -> None:
        """Handles one mark."""
        self._linear = mark[0] == TEXT
        if self._linear:
            self._place = Place(self._place_of(number_of(mark)), tuple(self._open))
            return
        if mark[0] == BEGIN:
            self._open.append(self._place_of(number_of(mark)))
        elif self._open:
            self._open.pop()
        self._place = Place(self._open[-1], tuple(self._open[:-1])) if self._open else Place(self._start)
