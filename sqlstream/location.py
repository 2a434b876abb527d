"""Places in the user's files, and the map from compiled SQL back to them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file: `path` is posix and relative to the project's root; `line` and `column` start at 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Place:
    """Where a piece of compiled SQL was written: `location` is the innermost place (a macro's own line inside a macro).

    `calls` are the lines that led there, outermost first and empty for text of the model itself.
    """

    location: Location
    calls: tuple[Location, ...] = ()

    @property
    def outermost(self) -> Location:
        """The place in the model's own file."""
        return self.calls[0] if self.calls else self.location


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
    """Returns the location of the character at `offset` of `text`, the whole content of `path`."""
    before = text[:offset]
    return Location(path, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
