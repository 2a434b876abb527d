"""Places in the user's files, and the map from compiled SQL back to them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


def printable(text: str) -> str:
    """Returns `text` on one line, with a blank in place of each character without a shape, such as a line end, a
    terminal's control character or a mark that changes the direction of writing.
    """
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file: `path` is posix and relative to the project's root; `line` and `column` start at 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{printable(self.path)}:{self.line}:{self.column}"

    def below(self, lines: int) -> Location:
        """Returns the place so many lines further down."""
        return Location(self.path, self.line + lines, self.column)


@dataclass(frozen=True)
class Place:
    """Where a piece of compiled SQL was written: `location` is the innermost place (a macro's own line inside a macro).

    `calls` are the lines that led there, outermost first and empty for text of the model itself.
    """

    location: Location
    calls: tuple[Location, ...] = ()


@dataclass(frozen=True)
class Segment:
    """A run of compiled SQL from offset `start` up to the next segment.

    In a `linear` segment (template text, never longer than one line) columns advance with the text; otherwise (the
    output of an expression) all of it was written at `place`.
    """

    start: int
    place: Place
    linear: bool


@dataclass(frozen=True)
class SourceMap:
    """The segments of one compiled text, in ascending order of `start`; the first starts at 0."""

    segments: tuple[Segment, ...]

    def locate(self, offset: int) -> Place:
        """Returns where the character at `offset` (0-based, in characters) of the compiled text was written."""
        index = bisect_right(self.segments, offset, key=lambda segment: segment.start) - 1
        segment = self.segments[max(index, 0)]
        if not segment.linear:
            return segment.place
        at = segment.place.location
        moved = Location(at.path, at.line, at.column + max(offset - segment.start, 0))
        return Place(moved, segment.place.calls)


def location_at(path: str, text: str, offset: int) -> Location:
    """Returns the location of the character at `offset` of `text`, the whole content of `path`.

    A line ends as editors have it: with a newline, a carriage return, or both.
    """
    before = text[:offset]
    if "\r" in before:
        before = before[:-1] if text[offset - 1 : offset + 1] == "\r\n" else before
        before = before.replace("\r\n", "\n").replace("\r", "\n")
    return Location(path, before.count("\n") + 1, len(before) - before.rfind("\n"))


def locator(path: str, text: str) -> Callable[[int], Location]:
    """Returns `location_at` for many characters of one text, whose lines are looked for once."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def locate(offset: int) -> Location:
        line = bisect_right(starts, offset)
        return location_at(path, text[starts[line - 1] : offset + 1], offset - starts[line - 1]).below(line - 1)

    return locate
