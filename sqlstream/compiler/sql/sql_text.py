"""SQL with its tokens, their indexes and its relations, each computed once, its fingerprint, and the names of views in
it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sqlstream.compiler.sql.clauses import after_parentheses
from sqlstream.compiler.sql.relations import SqlRelation, find_relations
from sqlstream.compiler.sql.tokens import SqlTokenError, TokenKind, Tokens, flatten_hints, tokenize
from sqlstream.python_syntax import parse_module

TEXTS_IN_MEMORY = 1_000
"""The most texts that `read_sql` keeps. The rendered and the compiled SQL of most models are the same."""

PYTHON = "python:"
"""The prefix of the fingerprints of Python models."""

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SqlText:
    """SQL and its tokens. The other properties are computed on first use."""

    sql: str
    tokens: Tokens

    @cached_property
    def relations(self) -> tuple[SqlRelation, ...]:
        """All relations of the query, in the order of the text."""
        return find_relations(self.tokens, self.after)

    @cached_property
    def after(self) -> dict[int, int]:
        """The index after the `)` of each `(`, by index; the number of tokens for a `(` that is not closed."""
        return after_parentheses(self.tokens)

    @cached_property
    def starts(self) -> dict[int, int]:
        """The index of each token by the offset of its start."""
        return {token.start: index for index, token in enumerate(self.tokens)}

    @cached_property
    def ends(self) -> dict[int, int]:
        """The index of each token by the offset of its end."""
        return {token.end: index for index, token in enumerate(self.tokens)}

    @cached_property
    def keys(self) -> Counter[str]:
        """The number of occurrences of each word, in capitals, and of each symbol."""
        return Counter([token.key for token in self.tokens])

    def index_at(self, offset: int) -> int:
        """Returns the index of the token at `offset` or of the next one; the number of tokens if there is none."""
        return next((index for index, token in enumerate(self.tokens) if token.end > offset), len(self.tokens))


@lru_cache(TEXTS_IN_MEMORY)
def read_sql(sql: str) -> SqlText:
    """Returns `sql` with its tokens. Raises: SqlTokenError."""
    return SqlText(sql, tokenize(sql))


def fingerprint(sql: str) -> str:
    """Returns the SHA-256, in hexadecimal, of the tokens of `sql`, or of its text if it has no valid tokens.

    Comments, white space, semicolons at the end, and the case of keywords and unquoted identifiers do not count. Hints,
    and the case of quoted identifiers and strings, do.
    """
    try:
        tokens = tokenize(sql)
    except SqlTokenError:
        return hashlib.sha256(sql.encode()).hexdigest()
    while tokens and tokens[-1].key == ";":
        tokens = tokens[:-1]
    words = [
        token.text.upper() if token.kind is TokenKind.NUMBER else token.key or token.text
        for token in flatten_hints(tokens)
    ]
    # only a string can contain this separator, and quotes delimit it there
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def python_fingerprint(text: str, variables: Mapping[str, str]) -> str:
    """Returns `python:` and the SHA-256, in hexadecimal, of a Python model's code and the variables that it reads.

    Comments and layout do not count.
    """
    values = [f"{name}={value}" for name, value in sorted(variables.items())]
    return f"{PYTHON}{hashlib.sha256(chr(0).join((ast.unparse(parse_module(text)), *values)).encode()).hexdigest()}"


RESERVED_WORDS = frozenset(
    """
    all and anti any array as asc at authorization between both by case cast check cluster collate column constraint
    create cross cube current current_date current_time current_timestamp current_user delete desc describe distinct
    distribute drop else end escape except exists explain extract false fetch filter for foreign from full function
    grant group grouping having in inner insert intersect interval into is join lateral leading left like limit local
    map merge minus natural no not null of offset on only or order outer overlaps partition pivot position primary
    qualify range recursive references revoke right rollup row rows select semi session_user set setminus some sort
    sql start stream struct table tablesample then time to trailing transform true truncate union unique unknown
    unpivot update user using values watermark when where window with within
    """.split()  # noqa: SIM905 - a list of a hundred words in quotes cannot be read
)
"""Words that need back-quotes as the name of a relation: the strict non-reserved words and the ANSI reserved words of
https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html, and those that begin a clause."""


def view_name(parts: Sequence[str]) -> str:
    """Returns the unquoted name of a temp view: that of the model or seed, or `source__table` for a source table."""
    return "__".join(parts)


def quote_text(text: str) -> str:
    """Returns `text` as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quote_identifier(name: str, *, always: bool = False) -> str:
    """Returns `name` as one identifier in Spark SQL: in back-quotes if it needs them, or if `always`."""
    if not always and PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED_WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"
