"""Splits SQL into tokens by the rules of Spark's lexer (`SqlBaseLexer.g4` of Spark 4.3).

sqlglot's tokenizer differs from Spark's in some cases (a `--` comment that a backslash continues on the next line, a
hint with `*/` in a string, `{#` and `{%`, `1.5BD`), and its errors do not say where an unterminated string starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple


class TokenKind(StrEnum):
    """The kind of a token. `WORD` is a keyword or an unquoted identifier, which Spark's lexer cannot distinguish."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT = "hint"


class Token(NamedTuple):
    """One token: `text` is the SQL from `start` up to, not including, `end` (offsets in characters).

    `key` identifies keywords and symbols: a word in capitals, or the text of a symbol. It is empty for all other
    tokens, so a quoted identifier or a string never equals a keyword. `inside` has the tokens within a hint.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    key: str = ""
    inside: tuple[Token, ...] = ()

    @property
    def is_name(self) -> bool:
        """Whether the token can be an identifier."""
        return self.kind in _NAMES

    @property
    def name(self) -> str:
        """The identifier without backquotes, or the text of any other token."""
        return self.text[1:-1].replace("``", "`") if self.kind is TokenKind.QUOTED else self.text


class SqlTokenError(ValueError):
    """A string, comment or the like that starts at `offset` has no end."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


Tokens = tuple[Token, ...]

_BLANKS = " \t\n\f\r\v\u00a0\u1680\u2028\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""The white space of the grammar (`WS`)."""

_RULES = re.compile(
    rf"""
    [{_BLANKS}]*+
    (?:
      (?P<word>(?!r['"])(?:[^\W\d]\w*+(?!:)|[^\W\d_]+://[\w/\-.?=&\#%]+|[^\W\d]\w*))
    | (?P<line_comment>--(?:\\\n|[^\r\n])*)
    | (?P<hint>/\*\+)
    | (?P<comment>/\*)
    | (?P<hint_end>\*/)
    | (?P<dollars>\$[a-z]*\$)
    | (?P<string>r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")
    | (?P<quoted>`(?:[^`]|``)*+`)
    | (?P<opening>['"`])
    | (?P<number>
          (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?(?:f|d|bd)?(?![a-z0-9_])
        | [0-9]+e[+-][0-9]+(?:f|d|bd)?
        | [0-9]+(?:e[0-9]+)?(?:l|s|y|f|d|bd)?(?![a-z0-9_]) )
    | (?P<other_word>\w+)
    | (?P<symbol><=>|<>|<=|>=|!=|==|!>|!<|\|\||\|>|::|->|=>|<<|@v|.)
    )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""One piece of text with the blanks before it. The most frequent kind, a word that begins with a letter, comes first.
`other_word` begins with a digit, or is the `r` of a string without an end."""

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_OPENINGS = {"'": "string", '"': "string", "`": "quoted identifier"}
_KINDS = {
    "other_word": TokenKind.WORD,
    "quoted": TokenKind.QUOTED,
    "string": TokenKind.STRING,
    "dollars": TokenKind.STRING,
    "number": TokenKind.NUMBER,
}
_WORD, _SYMBOL = TokenKind.WORD, TokenKind.SYMBOL
_NAMES = (TokenKind.WORD, TokenKind.QUOTED)
_KEYED = (TokenKind.WORD, TokenKind.SYMBOL)
_make = tuple.__new__
"""Creates a token in half the time of its constructor. A model has about two hundred tokens."""


def tokenize(sql: str) -> Tokens:
    """Returns the tokens of `sql` without its comments.

    A hint is one token anywhere, though Spark's grammar accepts it only directly after SELECT. Double-quoted text is a
    string, as in Spark unless `spark.sql.ansi.doubleQuotedIdentifiers` is set.

    Raises:
        SqlTokenError: a string, quoted identifier, comment or hint has no end.
    """
    return _read(sql)[0]


def find_comments(sql: str) -> list[tuple[int, str]]:
    """Returns the offset and text of each comment of `sql`, without hints. Raises: SqlTokenError."""
    return _read(sql)[1]


def _read(sql: str) -> tuple[Tokens, list[tuple[int, str]]]:
    done: list[Token] = []
    outer: list[Token] = []
    comments: list[tuple[int, str]] = []
    hint: int | None = None
    end = len(sql.rstrip(_BLANKS))
    matches = _RULES.finditer(sql, 0, end)
    while (match := next(matches, None)) is not None:
        group = match.lastgroup
        text = match[group or "symbol"]
        after = match.end()
        start = after - len(text)
        if group == "word" or group == "symbol":  # most pieces
            kind = _WORD if group == "word" else _SYMBOL
            done.append(_make(Token, (kind, text, start, after, text.upper(), ())))
            continue
        if group == "comment" or group == "dollars":  # the rule matches only the opening
            after = _comment_end(sql, start) if group == "comment" else _dollar_string_end(sql, start, text)
            text, matches = sql[start:after], _RULES.finditer(sql, after, end)
        if group == "opening":
            raise SqlTokenError(start, f"a {_OPENINGS[text]} starts here and is never closed")
        if group == "comment" or group == "line_comment":
            comments.append((start, text))
        elif text == "/*+" and hint is None:
            hint, outer, done = start, done, []
        elif text == "*/" and hint is not None:
            outer.append(Token(TokenKind.HINT, sql[hint:after], hint, after, inside=tuple(done)))
            hint, done = None, outer
        else:
            kind = _KINDS.get(group or "", TokenKind.SYMBOL)
            done.append(Token(kind, text, start, after, text.upper() if kind in _KEYED else ""))
    if hint is not None:
        raise SqlTokenError(hint, "a hint starts here and is never closed")
    return tuple(done), comments


def flatten_hints(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yields the tokens, with each hint as its opening, its contents and its end."""
    for token in tokens:
        if token.kind is TokenKind.HINT:
            yield Token(TokenKind.SYMBOL, "/*+", token.start, token.start + 3, "/*+")
            yield from token.inside
            yield Token(TokenKind.SYMBOL, "*/", token.end - 2, token.end, "*/")
        else:
            yield token


def _comment_end(sql: str, start: int) -> int:
    """Returns the offset after the bracketed comment at `start`. Comments nest, hints within them do not."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += -1 if edge.group() == "*/" else 1
        if depth == 0:
            return edge.end()
    raise SqlTokenError(start, "a comment starts here and is never closed")


def _dollar_string_end(sql: str, start: int, tag: str) -> int:
    closing = sql.find(tag, start + len(tag))
    if closing < 0:
        raise SqlTokenError(start, "a string starts here and is never closed")
    return closing + len(tag)
