"""What the compiler may ask Spark's own parser, as a protocol: the compiler itself starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class SyntaxRefusal:
    """What Spark's parser says of a text that it refuses: its words, its error condition where it has one, and the
    offset at which it stops, None where it names none.
    """

    words: str
    condition: str | None
    offset: int | None


ParseWithSpark = Callable[[str], SyntaxRefusal | None]
"""Has Spark's parser read a text, and returns None where it accepts it."""


class ParserUnavailableError(Exception):
    """Spark's parser cannot be asked; the message says why."""


class SparkParser(Protocol):
    """Spark's parser, which is started only to be asked."""

    @property
    def identity(self) -> str:
        """What the answers depend on besides the text: the version of Spark and its settings."""

    def open(self, count: int) -> AbstractContextManager[ParseWithSpark]:
        """Starts the parser for questions about `count` models. Raises: ParserUnavailableError, also when asked."""
