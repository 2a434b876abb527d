"""Parses Spark SQL with sqlglot: one parser per thread, without log messages, and with corrections of the tree.

sqlglot reads the type of a literal (`DATE '...' :: type`) as a cast of all casts that follow it, and drops plus signs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from sqlglot import Token as SqlglotToken
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel

from sqlstream.compiler.sql.clauses import NO_TOKEN
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens

PLUS = "~"
"""Replaces a plus sign before an operand while sqlglot reads a text without `~`."""

_BEFORE_OPERAND = frozenset({
    "SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "CASE", "WHEN", "THEN", "ELSE", "HAVING", "BETWEEN",
    "(", ",", "[", "=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||",
})  # fmt: skip

_DIALECT = Spark()


class _Reader(threading.local):
    """A tokenizer and a parser for each thread, because both have state while they read."""

    def __init__(self) -> None:
        self.tokenizer = _DIALECT.tokenizer()
        self.parser = _DIALECT.parser()
        self.is_reading = False


_READER = _Reader()

logging.getLogger("sqlglot").addFilter(lambda _record: not _READER.is_reading)


def tokenize_for_sqlglot(sql: str) -> list[SqlglotToken]:
    """Returns the tokens of `sql`. Raises: sqlglot's TokenError."""
    return _READER.tokenizer.tokenize(sql)


def parse(tokens: list[SqlglotToken], sql: str) -> list[exp.Expr | None]:
    """Returns the trees of the statements in `sql`. Raises: sqlglot's ParseError, or any other exception."""
    reader = _READER
    reader.is_reading = True
    try:
        return reader.parser.parse(tokens, sql)
    finally:
        reader.is_reading = False


def write(node: exp.Expr) -> str:
    """Returns `node` as SQL on one line, without comments and with the original letter case of functions."""
    return _DIALECT.generate(node, comments=False, normalize_functions=False, unsupported_level=ErrorLevel.IGNORE)


def plus_signs(tokens: Tokens) -> Iterator[Token]:
    """Yields each plus sign that is certainly a sign and not an operator, except those of numbers."""
    for before, token, after in zip(tokens, tokens[1:], (*tokens[2:], NO_TOKEN), strict=False):
        is_sign = token.key == "+" and before.key in _BEFORE_OPERAND
        if is_sign and after.kind is not TokenKind.NUMBER and after.key not in ("INTERVAL", "+", "-"):
            yield token


def read_as_spark(tree: exp.Expr, text: str, *, has_plus: bool) -> None:
    """Changes `tree`, the tree of `text`, to Spark's meaning. With `has_plus`, each `~` is a plus sign."""
    if "::" in text:
        for node in list(tree.find_all(exp.Cast, exp.Neg)):
            _cast_literal(node, text)
    if "collate" in text.lower():  # string collate unicode: sqlglot reads the name of a column
        for type_ in list(tree.find_all(exp.DataType)):
            if isinstance(type_.args.get("collate"), exp.Column):
                type_.set("collate", exp.var(type_.args["collate"].name))
    if has_plus:
        for sign in list(tree.find_all(exp.BitwiseNot)):
            sign.replace(exp.Anonymous(this="positive", expressions=[sign.this]))


def _cast_literal(node: exp.Expr, text: str) -> None:
    """Moves the type or sign before a literal inside the casts that follow the literal."""
    if isinstance(node, exp.TryCast) or not isinstance(node.this, exp.TryCast):
        return
    casts = innermost = node.this
    while isinstance(innermost.this, exp.TryCast):
        innermost = innermost.this
    literal = innermost.this
    if not isinstance(literal, exp.Literal) or "start" not in literal.meta:
        return
    before = text[: literal.meta["start"]].rstrip()[-1:]
    if isinstance(node, exp.Neg):
        whole: exp.Expr | None = exp.Neg(this=literal) if before == "-" and not literal.is_string else None
    else:
        whole = exp.Cast(this=literal, to=node.args["to"]) if before.isalnum() else None
    if whole is not None:
        node.replace(casts)
        innermost.set("this", whole)
