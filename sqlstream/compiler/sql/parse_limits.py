"""Which texts sqlglot may be given: those that it reads in a second, and without overrunning the stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.dialects.spark import Spark

from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Kind, Token, Tokens

DEEPEST_NESTING = 100
"""Brackets within brackets. sqlglot is compiled code that calls itself for each level and does not watch the stack: the
process crashes at some thousand levels.
"""

MOST_READS = 100_000
"""Tokens that sqlglot may look at, some of them many times; it takes about five microseconds for each."""

MOST_VIEWS = 300
"""LATERAL VIEW, PIVOT and UNPIVOT in one text: each is followed through the columns of all before it."""

TYPE_NAMES = frozenset(
    word for word, kind in Spark.tokenizer_class.KEYWORDS.items() if kind in Spark.parser_class.TYPE_TOKENS
)
"""Words that sqlglot reads as a type before it reads them as a function: what is in their parentheses is read twice, so
`struct(struct(...))` costs twice as much with every level.
"""

NESTED_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
"""Types that hold others in `<` and `>`."""

QUERIES = frozenset({"FROM", "SELECT"})
BEFORE_QUERIES = frozenset({",", "FROM", "JOIN", "LATERAL"})
VIEWS = frozenset({"VIEW", "PIVOT", "UNPIVOT"})
CLOSINGS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
JOINS = frozenset({"JOIN", "STRAIGHT_JOIN"})
PREFIXES = frozenset({"!", "~", "@", "NOT", "ANY", "ARRAY", "DESC", "DESCRIBE", "FROM", "INTERVAL"})
"""What sqlglot reads an operand or a query after, calling itself: nesting without brackets."""

OPERATORS = frozenset(
    {"*", "/", "%", "=", "==", "!=", "<>", "<", ">", "<=", ">=", "<=>", "||", "|", "&", "^", "::", "->"}
)
_SIGNED = PREFIXES | OPERATORS | {"-", "+"}
PREFIXES_AFTER = {"-": _SIGNED, "+": _SIGNED, "RENAME": {"*"}, "REPLACE": {"*"}}
"""What nests like a prefix, and after what: `-` is a sign there, and `* REPLACE` is a clause."""

NEXT_OPERAND = frozenset({",", "AND", "OR", "WHEN", "THEN", "ELSE", "BY"})
"""What an operand of a prefix never goes beyond, as it never does beyond the clauses that end FROM."""

ENDS_FROM = frozenset({"SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "|>"})
_NOTHING = Token(Kind.SYMBOL, "", 0, 0)

_COUNTED = frozenset().union(
    *(CLOSINGS, CLOSINGS.values(), "<>", VIEWS, QUERIES, JOINS, PREFIXES, PREFIXES_AFTER, NEXT_OPERAND, ENDS_FROM),
    ("ON", "USING"),
)

_NESTING = (*CLOSINGS, "<", *PREFIXES, *PREFIXES_AFTER, *QUERIES, *VIEWS)
_DOUBLING = JOINS | TYPE_NAMES


@dataclass
class _Level:
    """One pair of brackets, which `closing` ends (None: the whole text); sqlglot reads what is in it `times` times.

    It reads the joins after one without a condition twice: first as joins of that one, whose conditions come last.
    `joins` are those that have none so far, each of which has doubled `times`. `depth` is how deep its brackets are;
    `prefixes` are those of the operand that is being read.
    """

    closing: str | None
    times: int
    depth: int = 0
    joins: int = 0
    prefixes: int = 0

    def take(self, before: Token, token: Token) -> None:
        """Counts a prefix, a join, its condition, or the end of an operand or of the FROM clause; one of `_COUNTED`."""
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
    """Whether a text would be within the limits if all that nests in it stood within one another, as in few it does."""
    nesting = sum(keys[key] for key in _NESTING if key in keys)
    doubling = sum(keys[key] for key in _DOUBLING if key in keys)
    return nesting <= DEEPEST_NESTING and tokens << doubling <= MOST_READS


def _is_bounded(tokens: Tokens) -> bool:
    reads = queries = views = 0
    levels = [_Level(None, 1)]
    for before, token in pairwise((_NOTHING, *tokens)):
        here = levels[-1]
        reads += here.times
        if token.key not in _COUNTED and reads <= MOST_READS:
            continue
        here.take(before, token)
        queries += token.key in QUERIES and before.key in BEFORE_QUERIES  # sqlglot reads all that follows as its own
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
