"""The block that a template opens and does not close."""

from __future__ import annotations

from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import Lexer

from sqlstream.compiler.render.places.source import TemplateSource, offset_tokens

BLOCKS = frozenset({"if", "for", "macro", "call", "filter", "with", "set"})
"""The statements that have an end. `set` has one only without a value."""


def unclosed_block(lexer: Lexer, source: TemplateSource) -> int | None:
    """Returns the 0-based offset of the innermost block that is still open at the end, None if there is none."""
    opened: list[int] = []
    words: list[tuple[str, int]] = []
    try:
        for offset, kind, value in offset_tokens(lexer, source.text, source.path):
            if kind == "block_begin":
                words = []
            elif kind in ("name", "operator"):
                words.append((value, offset - 1))
            elif kind == "block_end" and words:
                word, start = words[0]
                if word.startswith("end"):
                    del opened[-1:]
                elif word in BLOCKS and not (word == "set" and "=" in dict(words)):
                    opened.append(start)
    except TemplateSyntaxError:
        return None
    return opened[-1] if opened else None
