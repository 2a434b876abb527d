"""Whether an edit of only letter case can change the results of SQL.

Spark compares names of columns without letter case, but keys of maps and fields of variants with it. It also keeps
names as they are written, and a few functions turn them into values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError, Token, TokenKind, flatten_hints

_KEYWORDS = frozenset(
    "SELECT FROM WHERE GROUP BY HAVING ORDER ON USING AND OR NOT UNION ALL DISTINCT JOIN LEFT RIGHT FULL OUTER INNER "  # noqa: SIM905
    "CROSS SEMI ANTI AS WITH CASE WHEN THEN ELSE END IS NULL IN LIKE RLIKE BETWEEN INTERVAL WATERMARK DELAY OF LATERAL "
    "VIEW OVER PARTITION TRUE FALSE FILTER ASC DESC LIMIT EXISTS ESCAPE".split()
)
"""Words that are no names in practice."""

_EXPOSING = frozenset(
    "TO_JSON TO_XML TO_CSV TO_AVRO TO_PROTOBUF TO_VARIANT_OBJECT TYPEOF UNPIVOT IDENTIFIER VARIANT".split()  # noqa: SIM905
)
"""Words of SQL that turns names into values."""


@dataclass(frozen=True)
class CaseChange:
    """A word whose letter case changed: its offset in the new text, and the two words."""

    offset: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"`{self.before}` is now `{self.after}`, and their letter case can make a difference"


@dataclass(frozen=True)
class Names:
    """What is known about the names in a query. `columns` are the words, in lower case, that can be columns, None if
    they are unknown. `are_shown`: its results depend on the letter case of all names.
    """

    columns: frozenset[str] | None
    are_shown: bool


def names_in(texts: Iterable[str], schemas: Iterable[str] | None) -> Names:
    """Returns the names in the `texts` of a query, whose inputs have the columns `schemas` (DDL), None if unknown."""
    parsed = [each for each in map(_read, texts) if each is not None]
    are_shown = any(_EXPOSING & each.keys.keys() for each in parsed)
    if schemas is None:
        return Names(None, are_shown)
    words = (word.name.lower() for each in parsed for word in _column_words(each))
    declared = (token.name.lower() for ddl in schemas for token in _tokens(ddl) if token.is_name)
    return Names(frozenset((*words, *declared)), are_shown)


def case_change(old: str, new: str, names: Names) -> CaseChange | None:
    """Returns the first word whose letter case differs where results can depend on it, None if there is none.

    The two texts have the same fingerprint, so nothing else differs.
    """
    if old == new:
        return None
    text = _read(new)
    before, after = _tokens(old), _tokens(new)
    if text is None or len(before) != len(after):
        return None
    relations = {(each.visible_name or "").lower() for each in text.relations}
    qualifiers = relations - names.columns if names.columns is not None else frozenset[str]()
    for index, (one, other) in enumerate(zip(before, after, strict=True)):
        is_word = one.kind is TokenKind.WORD and one.text != other.text
        if is_word and _matters(after, index, qualifiers, names):
            return CaseChange(other.start, one.text, other.text)
    return None


def _matters(tokens: Sequence[Token], index: int, qualifiers: Iterable[str], names: Names) -> bool:
    before = tokens[index - 1].key if index else ""
    if before in (".", ":"):  # a field, or a column after the name of its relation
        start = index
        while start >= 2 and tokens[start - 1].key == ".":
            start -= 2
        is_column = before == "." and start == index - 2 and tokens[start].name.lower() in qualifiers
        return names.are_shown or not is_column
    following = tokens[index + 1].key if index + 1 < len(tokens) else ""
    # functions and keywords have the same meaning in any letter case
    return names.are_shown and following != "(" and tokens[index].key not in _KEYWORDS


def _column_words(text: SqlText) -> Iterator[Token]:
    """Yields all words that can be the name of a column: not those of relations, in front of a dot, and functions."""
    aliases = {_alias_start(text, each.alias_at) for each in text.relations if each.alias is not None}
    places = aliases | {each.name_start for each in text.relations}
    tokens = text.tokens
    for index, token in enumerate(tokens):
        following = [each.key for each in tokens[index + 1 : index + 3]]
        is_other = following[:1] in (["."], ["("]) or following == ["AS", "("]
        if token.is_name and token.start not in places and not is_other:
            yield token


def _alias_start(text: SqlText, offset: int) -> int:
    index = text.index_at(offset)
    if index < len(text.tokens) and text.tokens[index].key == "AS":
        index += 1
    return text.tokens[index].start if index < len(text.tokens) else -1


def _read(sql: str) -> SqlText | None:
    try:
        return read_sql(sql)
    except SqlTokenError:
        return None


def _tokens(sql: str) -> list[Token]:
    text = _read(sql)
    found = [] if text is None else list(flatten_hints(text.tokens))
    while found and found[-1].key == ";":
        found.pop()
    return found
