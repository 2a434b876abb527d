"""Spark's DDL of types as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKENS = re.compile(
    r"""
    (?P<space>\s+|--(?:\\\n|[^\r\n])*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>r?'(?:[^'\\]|\\.|'')*'|r?"(?:[^"\\]|\\.|"")*")
    | (?P<word>\w+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class TypeToken:
    """A word, a name in back-quotes, a text in quotes, or one other character; `end` after the last one."""

    kind: str
    text: str
    offset: int

    @property
    def key(self) -> str:
        """What it is compared with: the upper-case text of a word, or a symbol; empty for all others."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def is_name(self) -> bool:
        """Whether this can be an identifier: in types, every word can."""
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        """The identifier without its back-quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


def type_tokens(ddl: str) -> tuple[list[TypeToken], TypeToken]:
    """Returns the tokens without comments, and the one that stands for the end of the text."""
    found = [(match.lastgroup or "", match.group(), match.start()) for match in _TOKENS.finditer(ddl)]
    tokens = [TypeToken(*piece) for piece in found if piece[0] != "space"]
    return tokens, TypeToken("end", "", len(ddl.rstrip()))
