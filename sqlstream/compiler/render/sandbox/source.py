"""A template's text, its tokens with their exact offsets, and the location of each offset."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import Lexer

from sqlstream.location import Location

LINE_END = re.compile(r"\r\n|\r")


class TemplateSource:
    """The text of one file as Jinja reads it. Line ends are single newlines, which changes no line and no column."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = LINE_END.sub("\n", text)
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def location(self, offset: int) -> Location:
        """Returns the location of the character at `offset` (0-based)."""
        line = bisect_right(self._line_starts, offset)
        return Location(self.path, line, offset - self._line_starts[line - 1] + 1)

    def find_word(self, word: str, offset: int) -> int:
        """Returns the offset of `word` as a whole word at or after `offset`, or `offset` if it is not found."""
        found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self.text, offset)
        return found.start() if found else offset


def offset_tokens(lexer: Lexer, text: str, name: str | None) -> Iterator[tuple[int, str, str]]:
    """Yields the raw tokens of a text, each with its 1-based offset where Jinja has the line number.

    So every node, error and traceback of Jinja has its exact location. Only the whitespace that `{%-` and `-%}` strip
    lies between two tokens. Raises: TemplateSyntaxError.
    """
    end = 0
    try:
        for _, kind, value in lexer.tokeniter(text, name):
            start = text.find(value, end)
            end = start + len(value)
            yield start + 1, kind, value
    except TemplateSyntaxError as error:
        error.lineno = end + 1
        raise
