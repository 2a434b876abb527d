"""Spark's own parser in a short-lived Java process, only for SQL that sqlstream may not parse like Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from sqlstream.app.systems import is_windows
from sqlstream.compiler.digest import digest
from sqlstream.compiler.spark_versions import ParserUnavailableError, ParseWithSpark, installed_spark
from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.project.configuration.target import Target

logger = logging.getLogger("sqlstream.parser")

EXTENSIONS = "spark.sql.extensions"
"""Classes in this setting may replace Spark's parser."""


@dataclass(frozen=True)
class InstalledParser:
    """The parser of the installed pyspark, with the settings of `target`. Calls `notify` when it starts. Without
    `starts_java` it only has the identity of the parser, under which earlier results are cached.
    """

    target: Target
    env: Mapping[str, str] = field(repr=False)
    notify: Callable[[str], None]
    starts_java: bool = True

    @cached_property
    def identity(self) -> str:
        """A digest of Spark's version and of the settings, which affect the parser's result."""
        home = self.env.get("SPARK_HOME", "")
        return digest(installed_spark(), home, self._settings, self._other_parser or "")

    @contextmanager
    def open(self, count: int) -> Iterator[ParseWithSpark]:
        """Starts Java for the duration of the body. Raises: ParserUnavailableError."""
        if not self.starts_java:
            raise ParserUnavailableError("this command starts no Java")
        if is_windows():
            raise ParserUnavailableError("sqlstream starts Java on Linux and macOS only")
        if self._other_parser is not None:
            raise ParserUnavailableError(self._other_parser)
        # only for SQL that is not in the cache
        from sqlstream.spark.jvm.java import find_java
        from sqlstream.spark.jvm.pyspark_package import check_spark

        java = find_java(self.env, start=False)
        if isinstance(java, Finding):
            raise ParserUnavailableError(java.why)
        wrong = check_spark(self.env)  # loads pyspark
        if wrong is not None:
            raise ParserUnavailableError(wrong.message)
        message = f"Checking {plural(count, 'model')} with Spark's parser"
        logger.info(message)
        self.notify(message)
        from sqlstream.spark.jvm.sql_parser import spark_parser  # loads pyspark

        with spark_parser(java, self.env, self._settings) as parse:
            yield parse

    @property
    def _settings(self) -> dict[str, str]:
        settings = self.target.spark.items()
        return {name: value for name, value in settings if name.startswith("spark.sql.") and isinstance(value, str)}

    @property
    def _other_parser(self) -> str | None:
        """Why the target's Spark may parse SQL differently from the installed one; None if it does not."""
        if EXTENSIONS in self.target.spark:
            return f"target `{self.target.name}` sets {EXTENSIONS}, which may add another parser"
        if self.target.remote is not None:
            return f"target `{self.target.name}` uses another Spark, over Spark Connect"
        return None
