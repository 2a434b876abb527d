"""The block that a template opens and does not close."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import Lexer

from sqlstream.compiler.render.places.source import OffsetTokens, TemplateSource

BLOCKS = frozenset({"if", "for", "macro", "call", "filter", "with", "set"})
"""The statements that have an end; `set` only where it is given no value."""


def unclosed_block(lexer: Lexer, source: TemplateSource) -> int | None:
    """Returns the 0-based offset of the innermost block that is still open at the end, None where there is none."""
    opened: list[int] = []
    try:
        for offset, words in _statements(lexer, source):
            if words[0].startswith("end"):
                del opened[-1:]
            elif words[0] in BLOCKS and not (words[0] == "set" and "=" in words):
                opened.append(offset)
    except TemplateSyntaxError:
        return None
    return opened[-1] if opened else None


def _statements(lexer: Lexer, source: TemplateSource) -> Iterator[tuple[int, list[str]]]:
    """Each statement as the offset of its first word and all of its words."""
    words: list[str] = []
    start = 0
    for offset, kind, value in OffsetTokens(lexer, source.text, source.path):
        if kind == "block_begin":
            words = []
        elif kind == "block_end" and words:
            yield start, words
        elif kind in ("name", "operator"):
            start = start if words else offset - 1
            words.append(value)
