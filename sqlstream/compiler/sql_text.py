"""A piece of SQL with what is found in it again and again: its tokens and its relations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from sqlstream.compiler.relations import Relation, find_relations
from sqlstream.compiler.tokens import Tokens, tokenize

REMEMBERED = 1_000
"""Texts that are read once: what runs is what was rendered, but for hints and streams that are read twice."""


@dataclass(frozen=True)
class SqlText:
    """A text, its tokens, and its relations, which are looked for once, when they are first asked for."""

    sql: str
    tokens: Tokens

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """All relations of the query in the order in which they stand."""
        return find_relations(self.tokens)


@lru_cache(REMEMBERED)
def read_sql(sql: str) -> SqlText:
    """Returns `sql` with its tokens. Raises: SqlTokenError."""
    return SqlText(sql, tokenize(sql))
