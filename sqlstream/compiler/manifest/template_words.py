"""What a template of SQL says, apart from how it looks: two of the same words are the same model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.render.places.template_code import Code, Piece, split_template, string_of
from sqlstream.compiler.sql.tokens import Kind, SqlTokenError, Token, find_comments, tokenize

KEYWORDS = frozenset({
    "ALL", "AND", "AS", "BY", "CASE", "CROSS", "DISTINCT", "ELSE", "END", "EXCEPT", "FROM", "FULL", "GROUP", "HAVING",
    "IN", "INNER", "INTERSECT", "IS", "JOIN", "LATERAL", "LEFT", "NATURAL", "NOT", "NULL", "ON", "OR", "ORDER",
    "OUTER", "OVER", "PARTITION", "RIGHT", "SELECT", "THEN", "UNION", "USING", "WHEN", "WHERE", "WITH",
})  # fmt: skip
"""Words whose letters' case does not count: those that are no names, unless AS or a dot stands before them."""

NEUTRAL = frozenset("(),;[]")
"""Signs that never join with what a `{{ }}` beside them prints."""

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")

GLUE = " "
"""The word between two that stand together without a blank, where one is Jinja: `{{ prefix }}_name` is one name."""


@dataclass(frozen=True)
class TemplateWords:
    """What a template says: its `words`, the `names` that its Jinja uses, the `variables` that var() reads (None where
    a name is computed, so that it may be any), and what its config() calls set, by key.

    Comments, white space and the case of `KEYWORDS` make no difference in `words`; hints do. The white space that a
    `-` of a tag strips is gone. Where SQL cannot be told from text, as in a string that a tag divides, all counts.
    """

    words: tuple[str, ...]
    names: frozenset[str]
    variables: frozenset[str] | None
    config: Mapping[str, tuple[str, ...]]


def read_template(text: str) -> TemplateWords:
    """Returns what the template `text` says."""
    return read_pieces(split_template(text))


def read_pieces(pieces: Sequence[Piece]) -> TemplateWords:
    """Returns what the pieces of a template say."""
    codes = [piece for piece in pieces if isinstance(piece, Code)]
    names = frozenset(token for code in codes for token in code.tokens if token.isidentifier())
    config = {key: value for code in codes for key, value in _config(code.tokens)}
    return TemplateWords(_words(pieces, codes), names, _variables(codes), config)


def _words(pieces: Sequence[Piece], codes: Sequence[Code]) -> tuple[str, ...]:
    mark = _unused_character(pieces)
    sql = "".join(mark if isinstance(piece, Code) else piece for piece in pieces)
    try:
        tokens = [*_flat(tokenize(sql)), *_comments_with_code(sql, mark)]
    except SqlTokenError:
        return tuple(map(str, pieces))
    if sum(token.text.count(mark) for token in tokens) != len(codes):
        return tuple(map(str, pieces))
    tokens.sort(key=lambda token: token.start)
    spelled = _Spelling(mark, iter(codes))
    words = [word for at in range(len(tokens)) for word in spelled.words(tokens, at)]
    if spelled.divided:
        return tuple(map(str, pieces))
    while words and words[-1] == ";":
        words.pop()
    return tuple(words)


class _Spelling:
    """Spells tokens in order, with Jinja in the place of marks; `divided` says whether a tag stands within one."""

    def __init__(self, mark: str, codes: Iterator[Code]) -> None:
        self.divided = False
        self._mark = mark
        self._codes = codes

    def words(self, tokens: Sequence[Token], at: int) -> Iterator[str]:
        token = tokens[at]
        before = tokens[at - 1] if at > 0 else None
        if before is not None and self._joins(before, token):
            yield GLUE
        if token.text == self._mark:
            yield str(next(self._codes))
        elif self._mark in token.text:
            yield self._filled(token.text)
        else:
            after = tokens[at + 1] if at + 1 < len(tokens) else None
            yield token.key if _is_keyword(before, token, after) else token.text

    def _joins(self, before: Token, token: Token) -> bool:
        is_code = self._mark in (before.text, token.text)
        return is_code and before.end == token.start and not {before.text, token.text} & NEUTRAL

    def _filled(self, text: str) -> str:
        parts = []
        for part in text:
            code = next(self._codes) if part == self._mark else None
            self.divided = self.divided or (code is not None and not code.is_output)
            parts.append(part if code is None else str(code))
        return "".join(parts)


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, those within hints among them, with the edges of each hint."""
    for token in tokens:
        if token.kind is Kind.HINT:
            yield Token(Kind.SYMBOL, "/*+", token.start, token.start + 3, "/*+")
            yield from token.inside
            yield Token(Kind.SYMBOL, "*/", token.end - 2, token.end, "*/")
        else:
            yield token


def _comments_with_code(sql: str, mark: str) -> Iterator[Token]:
    """The comments in which Jinja stands, which runs there too, and may print the comment's end."""
    for start, text in find_comments(sql):
        if mark in text:
            yield Token(Kind.STRING, text, start, start + len(text))


def _is_keyword(before: Token | None, token: Token, after: Token | None) -> bool:
    if token.kind is not Kind.WORD or token.key not in KEYWORDS:
        return False
    is_name = before is not None and before.key in (".", "AS")
    return not is_name and (after is None or after.key != ".")


def _unused_character(pieces: Sequence[Piece]) -> str:
    """A character of Unicode's private use area that stands nowhere in the text."""
    used = {letter for piece in pieces if isinstance(piece, str) for letter in piece}
    return next(letter for letter in map(chr, range(0xE000, 0xF8FF)) if letter not in used)


def _variables(codes: Sequence[Code]) -> frozenset[str] | None:
    found = set()
    for code in codes:
        for at in (at for at, word in enumerate(code.tokens) if word == "var"):
            name = string_of(code.tokens[at + 2]) if code.tokens[at + 1 : at + 2] == ("(",) else None
            if name is None:
                return None
            found.add(name)
    return frozenset(found)


def _config(tokens: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The keys that config(...) sets with the tokens of their values; all else in its parentheses has the key ``."""
    if tokens[:1] == ("do",):
        tokens = tokens[1:]
    if tokens[:2] != ("config", "("):
        return
    argument: list[str] = []
    depth = 0
    for word in tokens[2:-1]:
        depth += (word in OPENING) - (word in CLOSING)
        if word == "," and depth == 0:
            yield _keyed(argument)
            argument = []
        else:
            argument.append(word)
    if argument:
        yield _keyed(argument)


def _keyed(argument: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    is_named = len(argument) > 2 and argument[1] == "="
    return (argument[0], tuple(argument[2:])) if is_named else ("", tuple(argument))
