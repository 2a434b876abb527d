"""Parses Python code, in one thread at a time.

CPython 3.11 counts the depth of the trees of all threads in one number. If two threads build trees at once, it raises a
SystemError: "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
from threading import Lock

_LOCK = Lock()


def parse_module(text: str, path: str = "<unknown>") -> ast.Module:
    """Returns the tree of a module. Raises: SyntaxError, ValueError, RecursionError, MemoryError."""
    with _LOCK:
        return ast.parse(text, path)


def parse_expression(text: str) -> ast.expr:
    """Returns the tree of an expression. Raises: SyntaxError, ValueError, RecursionError, MemoryError."""
    with _LOCK:
        return ast.parse(text, mode="eval").body
