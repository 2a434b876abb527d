"""The interface to Spark's parser, which the compiler uses but does not start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class SyntaxRefusal:
    """An error of Spark's parser: its words, its error condition if any, and the offset at which it stops if known."""

    words: str
    condition: str | None
    offset: int | None


ParseWithSpark = Callable[[str], SyntaxRefusal | None]
"""Parses a text with Spark. Returns None if Spark accepts it."""


class ParserUnavailableError(Exception):
    """Spark's parser is not available. The message says why."""


class SparkParser(Protocol):
    """Spark's parser, started on demand."""

    @property
    def identity(self) -> str:
        """The version and settings of Spark, on which its results depend."""

    def open(self, count: int) -> AbstractContextManager[ParseWithSpark]:
        """Starts the parser for `count` models. Raises: ParserUnavailableError, here or while it parses."""
