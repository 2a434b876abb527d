"""SQL text as tokens, by the rules of Spark's own lexer.

The rules are those of `SqlBaseLexer.g4` of Spark 4.3. sqlglot's tokenizer is not used here because it reads some text
differently (a `--` comment that a backslash continues on the next line, a hint that holds `*/` in a string, `{#` and
`{%`, `1.5BD`), and because its errors do not say where an unterminated string starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a token is. `WORD` is a keyword or an unquoted identifier: Spark's lexer cannot tell them apart either."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT = "hint"


class Token(NamedTuple):
    """One token: `text` is what stands in the SQL from `start` up to, not including, `end` (offsets in characters).

    `key` is what keywords and symbols are compared with: the upper-case text of a word, the text of a symbol, and empty
    for all others, so that a quoted identifier or a string is never taken for a keyword. `inside` holds the tokens
    between `/*+` and `*/` of a hint.
    """

    kind: Kind
    text: str
    start: int
    end: int
    key: str = ""
    inside: tuple[Token, ...] = ()

    @property
    def is_quoted(self) -> bool:
        """Whether this is an identifier in backquotes."""
        return self.kind is Kind.QUOTED

    @property
    def is_name(self) -> bool:
        """Whether this can be an identifier."""
        return self.kind in _NAMES

    @property
    def name(self) -> str:
        """The identifier without its backquotes, or the text of any other token."""
        return self.text[1:-1].replace("``", "`") if self.is_quoted else self.text


class SqlTokenError(ValueError):
    """The SQL cannot be read because something that opens at `offset` (a string, a comment) never ends."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


Tokens = tuple[Token, ...]

_BLANKS = " \t\n\f\r\v\u00a0\u1680\u2028\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What separates tokens: `WS` of the grammar."""

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
"""One piece of text with the blanks before it. What most pieces are, a word that begins with a letter, stands first;
`other_word` begins with a digit, or is the `r` of a string that never ends."""

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_OPENINGS = {"'": "string", '"': "string", "`": "quoted identifier"}
_COMMENTS = ("line_comment", "comment")
_KINDS = {
    "word": Kind.WORD,
    "other_word": Kind.WORD,
    "quoted": Kind.QUOTED,
    "string": Kind.STRING,
    "dollars": Kind.STRING,
    "number": Kind.NUMBER,
}
_WORD, _SYMBOL = Kind.WORD, Kind.SYMBOL
_NAMES = (Kind.WORD, Kind.QUOTED)
_KEYED = (Kind.WORD, Kind.SYMBOL)
_make = tuple.__new__
"""Makes a token in half the time that its constructor takes: there are some two hundred in a model."""


def tokenize(sql: str) -> Tokens:
    """Returns the tokens of `sql` without its comments.

    A hint is one token wherever it stands; Spark's grammar takes one only directly after SELECT. Double-quoted text is
    a string, as it is for Spark unless `spark.sql.ansi.doubleQuotedIdentifiers` is set.

    Raises:
        SqlTokenError: a string, quoted identifier, comment or hint never ends.
    """
    done: list[Token] = []
    outer: list[Token] = []
    hint: int | None = None
    for group, start, text in _pieces(sql):
        if group == "word":  # what most pieces are
            done.append(_make(Token, (_WORD, text, start, start + len(text), text.upper(), ())))
        elif group == "symbol":
            done.append(_make(Token, (_SYMBOL, text, start, start + len(text), text.upper(), ())))
        elif group == "opening":
            raise SqlTokenError(start, f"a {_OPENINGS[text]} starts here and is never closed")
        elif text == "/*+" and hint is None:
            hint, outer, done = start, done, []
        elif text == "*/" and hint is not None:
            end = start + len(text)
            outer.append(Token(Kind.HINT, sql[hint:end], hint, end, inside=tuple(done)))
            hint, done = None, outer
        elif group not in _COMMENTS:
            kind = _KINDS.get(group, Kind.SYMBOL)
            done.append(Token(kind, text, start, start + len(text), text.upper() if kind in _KEYED else ""))
    if hint is not None:
        raise SqlTokenError(hint, "a hint starts here and is never closed")
    return tuple(done)


def find_comments(sql: str) -> Iterator[tuple[int, str]]:
    """Gives the comments of `sql`, which are no hints, as the offset and text of each. Raises: SqlTokenError."""
    return ((start, text) for group, start, text in _pieces(sql) if group in _COMMENTS)


def _pieces(sql: str) -> Iterator[tuple[str, int, str]]:
    """Gives all pieces of the text in order, comments too, as their group of `_RULES`, offset and text."""
    begin: int | None = 0
    end_of_text = len(sql.rstrip(_BLANKS))
    while begin is not None:
        pieces, begin = _RULES.finditer(sql, begin, end_of_text), None
        for match in pieces:
            group = match.lastgroup or "symbol"
            text = match[group]
            start = match.end() - len(text)
            if group == "comment" or group == "dollars":
                begin = _comment_end(sql, start) if group == "comment" else _dollar_string_end(sql, start, match.end())
                yield group, start, sql[start:begin]
                break
            yield group, start, text


def _comment_end(sql: str, start: int) -> int:
    """Returns the offset after the bracketed comment at `start`; such comments nest, hints within them do not."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += -1 if edge.group() == "*/" else 1
        if depth == 0:
            return edge.end()
    raise SqlTokenError(start, "a comment starts here and is never closed")


def _dollar_string_end(sql: str, start: int, body: int) -> int:
    tag = sql[start:body]
    closing = sql.find(tag, body)
    if closing < 0:
        raise SqlTokenError(start, "a string starts here and is never closed")
    return closing + len(tag)
