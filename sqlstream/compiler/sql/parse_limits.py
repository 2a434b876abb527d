"""Decides which texts sqlglot can parse within a second and without a stack overflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.dialects.spark import Spark

from sqlstream.compiler.sql.clauses import NO_TOKEN
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Token, Tokens

DEEPEST_NESTING = 100
"""The deepest nesting of brackets. sqlglot is compiled code that recurses for each level without checking the stack, so
the process crashes at a few thousand levels.
"""

MOST_READS = 100_000
"""The most tokens to read, where sqlglot reads some of them many times. Each takes about five microseconds."""

MOST_VIEWS = 300
"""The most LATERAL VIEW, PIVOT and UNPIVOT in one text. The cost of each grows with the number before it."""

TYPE_NAMES = frozenset(
    word for word, kind in Spark.tokenizer_class.KEYWORDS.items() if kind in Spark.parser_class.TYPE_TOKENS
)
"""Words that sqlglot first reads as a type, then as a function. It reads the contents of their parentheses twice, so
the cost of `struct(struct(...))` doubles with every level.
"""

NESTED_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
"""Types with element types in `<` and `>`."""

QUERIES = frozenset({"FROM", "SELECT"})
BEFORE_QUERIES = frozenset({",", "FROM", "JOIN", "LATERAL"})
VIEWS = frozenset({"VIEW", "PIVOT", "UNPIVOT"})
CLOSINGS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
JOINS = frozenset({"JOIN", "STRAIGHT_JOIN"})
PREFIXES = frozenset({"!", "~", "@", "NOT", "ANY", "ARRAY", "DESC", "DESCRIBE", "FROM", "INTERVAL"})
"""Words after which sqlglot recurses to read an operand or a query: nesting without brackets."""

OPERATORS = frozenset(
    {"*", "/", "%", "=", "==", "!=", "<>", "<", ">", "<=", ">=", "<=>", "||", "|", "&", "^", "::", "->"}
)
_SIGNED = PREFIXES | OPERATORS | {"-", "+"}
PREFIXES_AFTER = {"-": _SIGNED, "+": _SIGNED, "RENAME": {"*"}, "REPLACE": {"*"}}
"""Words that are prefixes only after certain others: `-` as a sign, and the clause `* REPLACE`."""

NEXT_OPERAND = frozenset({",", "AND", "OR", "WHEN", "THEN", "ELSE", "BY"})
"""Words that end the operand of a prefix, like those in `ENDS_FROM`."""

ENDS_FROM = frozenset({"SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "|>"})

_COUNTED = frozenset().union(
    *(CLOSINGS, CLOSINGS.values(), "<>", VIEWS, QUERIES, JOINS, PREFIXES, PREFIXES_AFTER, NEXT_OPERAND, ENDS_FROM),
    ("ON", "USING"),
)

_NESTING = (*CLOSINGS, "<", *PREFIXES, *PREFIXES_AFTER, *QUERIES, *VIEWS)
_DOUBLING = JOINS | TYPE_NAMES


@dataclass
class _Level:
    """A pair of brackets that ends with `closing` (None: the whole text). sqlglot reads its contents `times` times.

    After a join without a condition it reads all following joins twice. `joins` counts the joins that have no condition
    yet, each of which doubles `times`. `depth` is the nesting of the brackets, `prefixes` that of the present operand.
    """

    closing: str | None
    times: int
    depth: int = 0
    joins: int = 0
    prefixes: int = 0

    def take(self, before: Token, token: Token) -> None:
        """Counts `token`, one of `_COUNTED`: a prefix, a join, its condition, or the end of an operand or of FROM."""
        if token.key in NEXT_OPERAND or token.key in ENDS_FROM:
            self.prefixes = 0
        elif token.key in PREFIXES or before.key in PREFIXES_AFTER.get(token.key, ()):
            self.prefixes += 1
        if token.key in JOINS and before.key != "CROSS":
            self.joins += 1
            self.times *= 2
        elif token.key in ("ON", "USING") and self.joins:
            self.joins -= 1
            self.times //= 2
        elif token.key in ENDS_FROM:
            self.times //= 2**self.joins
            self.joins = 0


def is_bounded(text: SqlText) -> bool:
    """Returns whether sqlglot can read `text` within the limits above."""
    return _is_small(text.keys, len(text.tokens)) or _is_bounded(text.tokens)


def _is_small(keys: Mapping[str, int], tokens: int) -> bool:
    """Whether a text is within the limits even if all its words of `_NESTING` were nested in each other."""
    nesting = sum(keys[key] for key in _NESTING if key in keys)
    doubling = sum(keys[key] for key in _DOUBLING if key in keys)
    return nesting <= DEEPEST_NESTING and tokens << doubling <= MOST_READS


def _is_bounded(tokens: Tokens) -> bool:
    reads = queries = views = 0
    levels = [_Level(None, 1)]
    for before, token in pairwise((NO_TOKEN, *tokens)):
        here = levels[-1]
        reads += here.times
        if token.key not in _COUNTED and reads <= MOST_READS:
            continue
        here.take(before, token)
        queries += token.key in QUERIES and before.key in BEFORE_QUERIES  # all that follows is nested in it
        views += token.key in VIEWS
        closing = ">" if token.key == "<" and before.key in NESTED_TYPES else CLOSINGS.get(token.key)
        if closing is not None:
            is_doubled = token.key == "(" and before.key in TYPE_NAMES
            levels.append(_Level(closing, here.times * 2 if is_doubled else here.times, here.depth + here.prefixes + 1))
        elif token.key == here.closing:
            levels.pop()
        if reads > MOST_READS or views > MOST_VIEWS or here.depth + here.prefixes + queries > DEEPEST_NESTING:
            return False
    return True
