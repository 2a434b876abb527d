"""Which texts sqlglot may be given: those that it reads in a second, and without overrunning the stack."""

from __future__ import annotations

from itertools import pairwise

from sqlglot.dialects.spark import Spark

from sqlstream.compiler.tokens import Kind, Token, Tokens

DEEPEST_NESTING = 100
"""Brackets within brackets. sqlglot is compiled code that calls itself for each level and does not watch the stack: the
process crashes at some ten thousand levels.
"""

MOST_READS = 100_000
"""Tokens that sqlglot may look at, some of them many times; it takes about five microseconds for each."""

TYPE_NAMES = frozenset(
    word for word, kind in Spark.tokenizer_class.KEYWORDS.items() if kind in Spark.parser_class.TYPE_TOKENS
)
"""Words that sqlglot reads as a type before it reads them as a function: what is in their parentheses is read twice, so
`struct(struct(...))` costs twice as much with every level.
"""

NESTED_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
"""Types that hold others in `<` and `>`."""

CLOSINGS = {"(": ")", "[": "]", "{": "}"}
_NOTHING = Token(Kind.SYMBOL, "", 0, 0)


def is_bounded(tokens: Tokens) -> bool:
    """Returns whether sqlglot can read a text of these tokens within the limits above."""
    reads, times = 0, 1
    opened: list[tuple[str, int]] = []
    for before, token in pairwise((_NOTHING, *tokens)):
        reads += times
        closing = CLOSINGS.get(token.key)
        if token.key == "<" and before.key in NESTED_TYPES:
            closing = ">"
        if closing is not None:
            opened.append((closing, times))
            times *= 2 if token.key == "(" and before.key in TYPE_NAMES else 1
        elif opened and token.key == opened[-1][0]:
            times = opened.pop()[1]
        if reads > MOST_READS or len(opened) > DEEPEST_NESTING:
            return False
    return True
