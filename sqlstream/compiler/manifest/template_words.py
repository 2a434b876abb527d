"""The words of SQL templates and macros. Templates with equal words differ only in their formatting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, TemplateSyntaxError
from jinja2.lexer import Lexer

from sqlstream.compiler.sql.tokens import SqlTokenError, Token, TokenKind, find_comments, flatten_hints, tokenize

_LEXER = Lexer(Environment(keep_trailing_newline=True))  # noqa: S701 - it reads tokens, and renders nothing
_BEGINNINGS = {"variable_begin": True, "block_begin": False}
_ENDS = ("variable_end", "block_end")

KEYWORDS = frozenset({
    "ALL", "AND", "AS", "BY", "CASE", "CROSS", "DISTINCT", "ELSE", "END", "EXCEPT", "FROM", "FULL", "GROUP", "HAVING",
    "IN", "INNER", "INTERSECT", "IS", "JOIN", "LATERAL", "LEFT", "NATURAL", "NOT", "NULL", "ON", "OR", "ORDER",
    "OUTER", "OVER", "PARTITION", "RIGHT", "SELECT", "THEN", "UNION", "USING", "WHEN", "WHERE", "WITH",
})  # fmt: skip
"""Words compared without their letter case, because they are names only after AS, or before or after a dot."""

NEUTRAL = frozenset("(),;[]")
"""Symbols that never join with the output of an adjacent `{{ }}`."""

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")

GLUE = " "
"""The word between SQL and adjacent Jinja without white space: `{{ prefix }}_name` is one name."""


@dataclass(frozen=True)
class TemplateWords:
    """The words of a template, the `names` in its Jinja, the `variables` that var() reads (None if a variable's name is
    computed), and the values that config() sets, by key.

    `words` ignore comments, white space, and the letter case of `KEYWORDS`, but not hints. If a tag divides an SQL
    token, such as a string, `words` are the unchanged pieces of the template.
    """

    words: tuple[str, ...]
    names: frozenset[str]
    variables: frozenset[str] | None
    config: Mapping[str, tuple[str, ...]]


def read_template(text: str) -> TemplateWords:
    """Returns the words of the template `text`."""
    return _read_pieces(split_template(text))


def read_macros(texts: Iterable[str]) -> Mapping[str, tuple[TemplateWords, ...]]:
    """Returns the words of each macro in the files `texts`, by name: its own, and those outside the macros of its file.

    A nested macro belongs to the outer one.
    """
    macros: dict[str, tuple[TemplateWords, ...]] = {}
    for text in texts:
        own, around = _split_macros(split_template(text))
        outside = _read_pieces(around)
        macros |= {name: (*macros.get(name, ()), _read_pieces(pieces), outside) for name, pieces in own.items()}
    return macros


def _split_macros(pieces: Iterable[Piece]) -> tuple[dict[str, list[Piece]], list[Piece]]:
    """Returns the pieces of each macro, tags included, and those outside all macros."""
    own: dict[str, list[Piece]] = {}
    around: list[Piece] = []
    open_macro: list[Piece] | None = None
    depth = 0
    for piece in pieces:
        tag = piece.tokens[0] if isinstance(piece, Code) and not piece.is_output and piece.tokens else ""
        if isinstance(piece, Code) and tag == "macro" and len(piece.tokens) > 1:
            depth += 1
            open_macro = own.setdefault(piece.tokens[1], []) if depth == 1 else open_macro
        (around if open_macro is None else open_macro).append(piece)
        depth -= tag == "endmacro"
        open_macro = None if depth == 0 else open_macro
    return own, around


def _read_pieces(pieces: Sequence[Piece]) -> TemplateWords:
    codes = [piece for piece in pieces if isinstance(piece, Code)]
    names = frozenset(token for code in codes for token in code.tokens if token.isidentifier())
    config = {key: value for code in codes for key, value in _config(code.tokens)}
    return TemplateWords(_words(pieces, codes), names, _variables(codes), config)


def _words(pieces: Sequence[Piece], codes: Sequence[Code]) -> tuple[str, ...]:
    unchanged = tuple(map(str, pieces))
    mark = _unused_character(unchanged)
    sql = "".join(mark if isinstance(piece, Code) else piece for piece in pieces)
    try:
        tokens = sorted([*flatten_hints(tokenize(sql)), *_comments_with_code(sql, mark)], key=lambda token: token.start)
    except SqlTokenError:
        return unchanged
    if sum(token.text.count(mark) for token in tokens) != len(codes):
        return unchanged
    remaining = iter(codes)
    words: list[str] = []
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        code = [next(remaining) for _ in range(token.text.count(mark))]
        if token.text != mark and not all(item.is_output for item in code):
            return unchanged
        if before is not None and _is_joined(before, token, mark):
            words.append(GLUE)
        words.append(_filled(token.text, mark, code) if code else _spelled(before, token, after))
    while words and words[-1] == ";":
        words.pop()
    return tuple(words)


def _is_joined(before: Token, token: Token, mark: str) -> bool:
    pair = {before.text, token.text}
    return mark in pair and before.end == token.start and pair.isdisjoint(NEUTRAL)


def _filled(text: str, mark: str, codes: Sequence[Code]) -> str:
    for code in codes:
        text = text.replace(mark, str(code), 1)
    return text


def _spelled(before: Token | None, token: Token, after: Token | None) -> str:
    if token.kind is not TokenKind.WORD or token.key not in KEYWORDS:
        return token.text
    is_name = (before is not None and before.key in (".", "AS")) or (after is not None and after.key == ".")
    return token.text if is_name else token.key


def _comments_with_code(sql: str, mark: str) -> Iterator[Token]:
    """Yields the comments that contain Jinja. It runs there too, and its output can end the comment."""
    for start, text in find_comments(sql):
        if mark in text:
            yield Token(TokenKind.STRING, text, start, start + len(text))


def _unused_character(texts: Iterable[str]) -> str:
    """Returns a character of Unicode's private use area that none of the texts contains."""
    used = set().union(*texts)
    return next(letter for letter in map(chr, range(0xE000, 0xF8FF)) if letter not in used)


def _variables(codes: Sequence[Code]) -> frozenset[str] | None:
    calls = [code.tokens[at + 1 : at + 3] for code in codes for at, word in enumerate(code.tokens) if word == "var"]
    names = [string_of(call[1]) if call[:1] == ("(",) else None for call in calls]
    known = frozenset(name for name in names if name is not None)
    return None if None in names else known


def _config(tokens: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each key that config() sets with the tokens of its value. Positional arguments have the empty key."""
    if tokens[:1] == ("do",):
        tokens = tokens[1:]
    if tokens[:2] != ("config", "("):
        return
    argument: list[str] = []
    depth = 0
    for word in (*tokens[2:-1], ","):
        depth += (word in OPENING) - (word in CLOSING)
        if word != "," or depth > 0:
            argument.append(word)
        elif argument:
            yield _keyed(argument)
            argument = []


def _keyed(argument: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    is_named = len(argument) > 2 and argument[1] == "="
    return (argument[0], tuple(argument[2:])) if is_named else ("", tuple(argument))


@dataclass(frozen=True)
class Code:
    """One `{{ ... }}` (`is_output`) or `{% ... %}`.

    `tokens` are its names, numbers, signs and strings in order, without blanks. All strings have the same quotes.
    """

    is_output: bool
    tokens: tuple[str, ...]

    def __str__(self) -> str:
        opening, closing = ("{{", "}}") if self.is_output else ("{%", "%}")
        return " ".join((opening, *self.tokens, closing))


Piece = str | Code
"""Text, or the Jinja between two texts."""


def split_template(text: str) -> tuple[Piece, ...]:
    """Returns the pieces of a template in order, without its Jinja comments.

    Texts do not contain what `-` strips or the tags of `raw`. An unreadable template is one text, as written.
    """
    try:
        return tuple(_pieces(text))
    except TemplateSyntaxError:
        return (text,)


def string_of(token: str) -> str | None:
    """Returns the text of a string token of `Code`, None for other tokens."""
    return token[1:] if token.startswith("'") else None


def _pieces(text: str) -> Iterator[Piece]:
    texts: list[str] = []
    tokens: list[str] = []
    is_output = is_open = False
    for _, kind, value in _LEXER.tokeniter(text, None):
        if kind == "data":
            texts.append(value)
        elif kind in _BEGINNINGS:
            is_output, tokens, is_open = _BEGINNINGS[kind], [], True
        elif kind in _ENDS:
            yield "".join(texts)
            texts, is_open = [], False
            yield Code(is_output, tuple(tokens))
        elif kind in ("name", "operator", "integer", "float", "string"):
            tokens.append(_string(value) if kind == "string" else value)
    if is_open:
        raise TemplateSyntaxError("a tag has no end", 1)
    yield "".join(texts)


def _string(quoted: str) -> str:
    """A string as a quote and its text, so both kinds of quotes yield the same token."""
    return "'" + quoted[1:-1].encode("ascii", "backslashreplace").decode("unicode-escape")
