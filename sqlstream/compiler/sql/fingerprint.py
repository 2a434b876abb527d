"""Fingerprints of queries that ignore formatting."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sqlstream.compiler.sql.tokens import Kind, SqlTokenError, Tokens, tokenize

PYTHON = "python:"
"""The prefix of the fingerprints of Python models."""


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
    # only a string can contain this separator, and quotes delimit it there
    return hashlib.sha256("\0".join(_words(tokens)).encode()).hexdigest()


def python_fingerprint(text: str) -> str:
    """Returns `python:` and the SHA-256, in hexadecimal, of the text of a Python model."""
    return f"{PYTHON}{hashlib.sha256(text.strip().encode()).hexdigest()}"


def _words(tokens: Tokens) -> Iterator[str]:
    for token in tokens:
        if token.kind is Kind.HINT:
            yield "/*+"
            yield from _words(token.inside)
            yield "*/"
        else:
            yield token.text.upper() if token.kind is Kind.NUMBER else token.key or token.text
