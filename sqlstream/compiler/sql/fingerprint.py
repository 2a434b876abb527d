"""Fingerprints of queries that ignore formatting."""

from __future__ import annotations

import hashlib

from sqlstream.compiler.sql.tokens import Kind, SqlTokenError, flatten_hints, tokenize

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
    words = [
        token.text.upper() if token.kind is Kind.NUMBER else token.key or token.text for token in flatten_hints(tokens)
    ]
    # only a string can contain this separator, and quotes delimit it there
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def python_fingerprint(text: str) -> str:
    """Returns `python:` and the SHA-256, in hexadecimal, of the text of a Python model."""
    return f"{PYTHON}{hashlib.sha256(text.strip().encode()).hexdigest()}"
