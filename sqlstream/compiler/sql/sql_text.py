"""A piece of SQL with what is found in it again and again: its tokens, where they stand, and its relations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter

from sqlstream.compiler.sql.clauses import after_parentheses
from sqlstream.compiler.sql.relations import SqlRelation, find_relations
from sqlstream.compiler.sql.tokens import Tokens, tokenize

_KEY = attrgetter("key")

REMEMBERED = 1_000
"""Texts that are read once: what runs is what was rendered, but for hints and streams that are read twice."""


@dataclass(frozen=True)
class SqlText:
    """A text and its tokens. What else is asked of them again and again is found when it is first asked for."""

    sql: str
    tokens: Tokens

    @cached_property
    def relations(self) -> tuple[SqlRelation, ...]:
        """All relations of the query in the order in which they stand."""
        return find_relations(self.tokens, self.after)

    @cached_property
    def after(self) -> dict[int, int]:
        """For the index of each `(`, the index after its `)`; the number of tokens where there is none."""
        return after_parentheses(self.tokens)

    @cached_property
    def starts(self) -> dict[int, int]:
        """The index of the token that starts at an offset."""
        return {token.start: index for index, token in enumerate(self.tokens)}

    @cached_property
    def ends(self) -> dict[int, int]:
        """The index of the token that ends at an offset."""
        return {token.end: index for index, token in enumerate(self.tokens)}

    @cached_property
    def keys(self) -> Counter[str]:
        """How often each word, in capitals, and each symbol stands in the text."""
        return Counter(map(_KEY, self.tokens))


@lru_cache(REMEMBERED)
def read_sql(sql: str) -> SqlText:
    """Returns `sql` with its tokens. Raises: SqlTokenError."""
    return SqlText(sql, tokenize(sql))
