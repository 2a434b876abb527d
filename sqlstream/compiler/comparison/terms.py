"""Expressions in their normal form: two expressions with the same term have the same value. It serves both readers of a
query, that of its SQL and that of Spark's plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from sqlstream.compiler.sql.sql_text import quote_identifier

CAST, FILTER = "cast as ", "filter"
"""Heads of terms with their own syntax: `cast as int`, and an aggregate function with a FILTER clause."""


class NotComparableError(Exception):
    """The comparison does not know what some SQL means for the state. The message says which."""


class Kind(StrEnum):
    """What a term is. Terms of the last four kinds belong to the relation that is their `owner`."""

    LITERAL = "literal"
    OPERATION = "operation"
    COLUMN = "column"
    """A column of a source or a static table."""
    CALL = "call"
    """The result of an aggregate function."""
    SIDE = "side"
    """A column of one side of a join."""
    BRANCHES = "branches"
    """A column of a union: its terms in all branches."""


@dataclass(frozen=True)
class Term:
    """An expression: the name of its operation, or the text of a column or literal, and its operands."""

    head: str
    parts: tuple[Term, ...] = ()
    kind: Kind = Kind.OPERATION
    owner: int = field(default=0, compare=False)

    @cached_property
    def text(self) -> str:
        """The term as text, in parentheses if it is an operation between two operands."""
        if self.kind in (Kind.LITERAL, Kind.COLUMN):
            return self.head
        texts = [part.text for part in self.parts]
        if self.kind is Kind.CALL:
            return texts[0]
        if self.head in _INFIX:
            return f"({f' {self.head} '.join(texts)})"
        texts = [part.shown for part in self.parts]
        if self.head.startswith("."):
            return f"{self.parts[0].text}{self.head}"
        if self.head.startswith(CAST):
            return f"cast({texts[0]} as {self.head.removeprefix(CAST)})"
        if self.head == FILTER:
            return f"{texts[0]} filter (where {texts[1]})"
        return f"{self.head}({', '.join(texts)})"

    @property
    def shown(self) -> str:
        """The text without parentheses around all of it."""
        return self.text[1:-1] if self.head in _INFIX and self.kind is Kind.OPERATION else self.text

    @property
    def has_columns(self) -> bool:
        """Whether the term depends on columns."""
        return any(part.kind is Kind.COLUMN for part in self.walk())

    def walk(self) -> Iterator[Term]:
        """Yields the term and all terms in it."""
        yield self
        for part in self.parts:
            yield from part.walk()


_COMMUTATIVE = frozenset({"+", "*", "=", "<=>", "and", "or"})
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INFIX = _COMMUTATIVE | {"-", "/", "%", "div", "||"} | _REVERSED.keys()
NULL = Term("null", kind=Kind.LITERAL)


def operation(head: str, *parts: Term) -> Term:
    """Returns an operation. The order of operands has no part in it where it has no meaning; a comparison has its
    literal on the right, or else `<` in place of `>`.
    """
    if head in ("and", "or"):
        found = {part.text: part for each in parts for part in flattened(each, head)}
        parts = tuple(found[text] for text in sorted(found))
        return parts[0] if len(parts) == 1 else Term(head, parts)
    if head in _REVERSED:
        first, second = (part.kind is Kind.LITERAL for part in parts)
        if not (second if first != second else head.startswith("<")):
            head, parts = _REVERSED[head], parts[::-1]
    if head in _COMMUTATIVE:
        parts = tuple(sorted(parts, key=lambda part: part.text))
    if head == "in":
        parts = (parts[0], *sorted(parts[1:], key=lambda part: part.text))
    return Term(head, parts)


def compared(condition: Term) -> tuple[Term, Term] | None:
    """Returns the term and the literal that a condition compares, None for other conditions."""
    if condition.head == "not":
        condition = condition.parts[0]
    if condition.head != "=" and condition.head not in _REVERSED:
        return None
    first, second = sorted(condition.parts, key=lambda part: part.kind is Kind.LITERAL)
    return (first, second) if second.kind is Kind.LITERAL and first.kind is not Kind.LITERAL else None


def literal(text: str) -> Term:
    """Returns a literal with its SQL."""
    return Term(text, kind=Kind.LITERAL)


def column(table: str, name: str, owner: int) -> Term:
    """Returns the column of a table, which is the relation `owner`."""
    shown = name if _PLAIN.fullmatch(name) else quote_identifier(name, always=True)
    return Term(f"{table}.{shown}", (), Kind.COLUMN, owner)


_PLAIN = re.compile(r"\w+")


def flattened(term: Term, head: str) -> Iterator[Term]:
    """Yields the operands of a chain of `and` or `or`, in their order; otherwise the term itself."""
    if term.head == head and term.kind is Kind.OPERATION:
        for part in term.parts:
            yield from flattened(part, head)
    else:
        yield term


def owned(terms: Iterable[Term], owner: int) -> list[Term]:
    """Returns the terms of the relation `owner` in `terms`, each once, in the order of first appearance."""
    found = (part for term in terms for part in term.walk())
    return list(dict.fromkeys(part for part in found if part.owner == owner))
