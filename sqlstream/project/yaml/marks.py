"""Converts positions of libyaml to lines and columns of an editor."""

from __future__ import annotations

import re
from typing import Protocol

from sqlstream.location import Location, location_at

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_RARE = re.compile("[\x85\u2028\u2029]")
"""Characters that end a line for libyaml, but not for an editor."""


class LibyamlMark(Protocol):
    """A position of libyaml. Both numbers count from 0."""

    @property
    def line(self) -> int:
        """The line."""

    @property
    def column(self) -> int:
        """The column."""


class Marks:
    """Finds the locations of libyaml's marks in one text."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        self._end = location_at(path, text, len(text))
        is_plain = _RARE.search(text) is None
        self._starts = () if is_plain else (0, *(found.end() for found in _BREAK.finditer(text)))

    def location(self, mark: LibyamlMark | None) -> Location:
        """Returns the location of a mark, or the file's beginning without one.

        libyaml ends each text with a line end, and reports missing text there on the next line.
        """
        if mark is None:
            return Location(self._path)
        if not self._starts:
            is_beyond = mark.line >= self._end.line
            return self._end if is_beyond else Location(self._path, mark.line + 1, mark.column + 1)
        start = self._starts[min(mark.line, len(self._starts) - 1)]
        return location_at(self._path, self._text, min(start + mark.column, len(self._text)))
