"""Splits a template into text and Jinja, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import Environment, TemplateSyntaxError
from jinja2.lexer import Lexer

_LEXER = Lexer(Environment(keep_trailing_newline=True))  # noqa: S701 - it reads tokens, and renders nothing
_BEGINNINGS = {"variable_begin": True, "block_begin": False}
_ENDS = ("variable_end", "block_end")


@dataclass(frozen=True)
class Code:
    """One `{{ ... }}` (`is_output`) or `{% ... %}`.

    `tokens` are its names, numbers, signs and strings in order, without blanks. All strings have the same quotes.
    """

    is_output: bool
    tokens: tuple[str, ...]

    def __str__(self) -> str:
        opening, closing = ("{{", "}}") if self.is_output else ("{%", "%}")
        return " ".join((opening, *self.tokens, closing))


Piece = str | Code
"""Text, or the Jinja between two texts."""


def split_template(text: str) -> tuple[Piece, ...]:
    """Returns the pieces of a template in order, without its Jinja comments.

    Texts do not contain what `-` strips or the tags of `raw`. An unreadable template is one text, as written.
    """
    try:
        return tuple(_pieces(text))
    except TemplateSyntaxError:
        return (text,)


def string_of(token: str) -> str | None:
    """Returns the text of a string token of `Code`, None for other tokens."""
    return token[1:] if token.startswith("'") else None


def _pieces(text: str) -> Iterator[Piece]:
    texts: list[str] = []
    tokens: list[str] = []
    is_output = is_open = False
    for _, kind, value in _LEXER.tokeniter(text, None):
        if kind == "data":
            texts.append(value)
        elif kind in _BEGINNINGS:
            is_output, tokens, is_open = _BEGINNINGS[kind], [], True
        elif kind in _ENDS:
            yield "".join(texts)
            texts, is_open = [], False
            yield Code(is_output, tuple(tokens))
        elif kind in ("name", "operator", "integer", "float", "string"):
            tokens.append(_string(value) if kind == "string" else value)
    if is_open:
        raise TemplateSyntaxError("a tag has no end", 1)
    yield "".join(texts)


def _string(quoted: str) -> str:
    """A string as a quote and its text, so both kinds of quotes yield the same token."""
    return "'" + quoted[1:-1].encode("ascii", "backslashreplace").decode("unicode-escape")
