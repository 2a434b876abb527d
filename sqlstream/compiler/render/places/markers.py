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
    pieces: list[str] = []
    segments: list[Segment] = []
    opened: list[Location] = []
    place, linear, length, at = Place(start), False, 0, 0
    for mark in (*MARK.finditer(marked), None):
        piece = marked[at : mark.start() if mark else None]
        if piece and (linear or not segments or segments[-1].linear or segments[-1].place != place):
            segments.append(Segment(length, place, linear))
        pieces.append(piece)
        length += len(piece)
        if mark is not None:
            at, linear = mark.end(), mark[1] == TEXT
            place = _place_after(mark, place_of, opened) or Place(start)
    return "".join(pieces), tuple(segments) or (Segment(0, Place(start), linear=False),)


def _place_after(mark: re.Match[str], place_of: Callable[[int], Location], opened: list[Location]) -> Place | None:
    """The place of the text after a mark. `opened` are the locations of the open expressions, which it updates."""
    if mark[1] == TEXT:
        return Place(place_of(number_of(mark[0])), tuple(opened))
    if mark[1] == BEGIN:
        opened.append(place_of(number_of(mark[0])))
    else:
        del opened[-1:]
    return Place(opened[-1], tuple(opened[:-1])) if opened else None
