"""A text of SQL with its tokens, their indexes and its relations, each computed once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter

from sqlstream.compiler.sql.clauses import after_parentheses
from sqlstream.compiler.sql.relations import SqlRelation, find_relations
from sqlstream.compiler.sql.tokens import Tokens, tokenize

_KEY = attrgetter("key")

TEXTS_IN_MEMORY = 1_000
"""Texts that are read only once: the rendered and the compiled SQL of most models are the same."""


@dataclass(frozen=True)
class SqlText:
    """A text and its tokens. The other properties are computed at their first use."""

    sql: str
    tokens: Tokens

    @cached_property
    def relations(self) -> tuple[SqlRelation, ...]:
        """All relations of the query in the order of the text."""
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
        """How often the text has each word, in capitals, and each symbol."""
        return Counter(map(_KEY, self.tokens))


@lru_cache(TEXTS_IN_MEMORY)
def read_sql(sql: str) -> SqlText:
    """Returns `sql` with its tokens. Raises: SqlTokenError."""
    return SqlText(sql, tokenize(sql))
