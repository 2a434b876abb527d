"""Tokens of Spark's DDL for types."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKENS = re.compile(
    r"""
    (?P<space>[ \t\n\r\f\v\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+|--(?:\\\n|[^\r\n])*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|[rR]'[^']*'|[rR]"[^"]*")
    | (?P<number>[0-9]+(?:[lLsSyY]|(?:[eE][0-9]+)?(?:[fFdD]|[bB][dD])?)(?!\w))
    | (?P<word>\w+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""White space as in Spark's lexer, which is less than Python's. Digits are a number, also with the letters that give a
literal its type; any other word can begin with a digit.
"""


@dataclass(frozen=True)
class TypeToken:
    """A word, a number, a name in back-quotes, a text in quotes, or one other character; `end` after the last one."""

    kind: str
    text: str
    offset: int

    @property
    def key(self) -> str:
        """The text for comparisons: a word in upper case, or a symbol; empty for other kinds."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def is_name(self) -> bool:
        """Whether this can be an identifier: in types, every word can."""
        return self.kind in ("word", "quoted")

    @property
    def needs_quotes(self) -> bool:
        """Whether Spark refuses this word outside of back-quotes because of its letters."""
        return self.kind == "word" and not self.text.isascii()

    @property
    def may_be_keyword(self) -> bool:
        """Whether this word has letters whose capitals are ASCII. Spark treats them as the letters of keywords."""
        return self.needs_quotes and self.text.replace("ſ", "s").replace("ı", "i").isascii()

    @property
    def name(self) -> str:
        """The identifier without its back-quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def value(self) -> str:
        """The text without its quotes. Spark interprets back-slashes in it."""
        if self.text[:1] in "rR":
            return self.text[2:-1]
        return self.text[1:-1].replace(self.text[0] * 2, self.text[0])


def type_tokens(ddl: str) -> tuple[list[TypeToken], TypeToken]:
    """Returns the tokens without comments, and the token for the end of the text."""
    found = [(match.lastgroup or "", match.group(), match.start()) for match in _TOKENS.finditer(ddl)]
    tokens = [TypeToken(*piece) for piece in found if piece[0] != "space"]
    return tokens, TypeToken("end", "", len(ddl.rstrip()))
