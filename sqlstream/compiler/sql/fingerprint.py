"""A fingerprint of a query's SQL that stays the same when only its looks change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sqlstream.compiler.sql.tokens import Kind, SqlTokenError, Tokens, tokenize

PYTHON = "python:"
"""What the fingerprint of a Python model begins with."""


def fingerprint(sql: str) -> str:
    """Returns the SHA-256, in hexadecimal, of the tokens of `sql`.

    Comments, white space, the case of keywords and unquoted identifiers, and a semicolon at the end do not count;
    hints, and the case of quoted identifiers and strings, do. SQL that cannot be read as tokens counts as written.
    """
    try:
        tokens = tokenize(sql)
    except SqlTokenError:
        return hashlib.sha256(sql.encode()).hexdigest()
    while tokens and tokens[-1].key == ";":
        tokens = tokens[:-1]
    # Only a string can hold this separator, and there the quotes delimit it.
    return hashlib.sha256("\0".join(_words(tokens)).encode()).hexdigest()


def python_fingerprint(text: str) -> str:
    """Returns `python:` and the SHA-256, in hexadecimal, of the text of a Python model: any change of it counts."""
    return f"{PYTHON}{hashlib.sha256(text.strip().encode()).hexdigest()}"


def _words(tokens: Tokens) -> Iterator[str]:
    for token in tokens:
        if token.kind is Kind.HINT:
            yield "/*+"
            yield from _words(token.inside)
            yield "*/"
        else:
            yield token.text.upper() if token.kind is Kind.NUMBER else token.key or token.text
