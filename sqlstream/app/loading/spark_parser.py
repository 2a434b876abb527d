"""Spark's own parser for SQL that sqlstream cannot read: a short Java process, started only for a question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata

from sqlstream.app.systems import is_windows
from sqlstream.compiler.cache.digest import digest
from sqlstream.compiler.spark_parser import ParserUnavailableError, ParseWithSpark
from sqlstream.errors import Finding
from sqlstream.project.values import Target
from sqlstream.project.wording import counted
from sqlstream.spark.jvm.java import find_java

logger = logging.getLogger("sqlstream.parser")

EXTENSIONS = "spark.sql.extensions"
"""Code that these name may bring a parser of its own."""


@dataclass(frozen=True)
class InstalledParser:
    """The parser of the installed pyspark, with the settings of `target`; `notify` hears when it is started."""

    target: Target
    env: Mapping[str, str] = field(repr=False)
    notify: Callable[[str], None]

    @cached_property
    def identity(self) -> str:
        """A digest of the version of Spark and of the settings: with others the answer may be another one."""
        home = self.env.get("SPARK_HOME", "")
        return digest(metadata.version("pyspark"), home, self._settings, self._other_parser or "")

    @contextmanager
    def open(self, count: int) -> Iterator[ParseWithSpark]:
        """Starts Java for as long as the body runs. Raises: ParserUnavailableError."""
        if is_windows():
            raise ParserUnavailableError("sqlstream starts Java on Linux and macOS only")
        if self._other_parser is not None:
            raise ParserUnavailableError(self._other_parser)
        java = find_java(self.env, start=False)
        if isinstance(java, Finding):
            raise ParserUnavailableError(java.why)
        said = f"Checking {counted(count, 'model')} that sqlstream cannot parse with Spark's parser"
        logger.info(said)
        self.notify(said)
        from sqlstream.spark.jvm.parser import spark_parser  # pyspark is loaded here and not before

        with spark_parser(java, self.env, self._settings) as parse:
            yield parse

    @property
    def _settings(self) -> dict[str, str]:
        settings = self.target.spark.items()
        return {name: value for name, value in settings if name.startswith("spark.sql.") and isinstance(value, str)}

    @property
    def _other_parser(self) -> str | None:
        """Why the target's Spark may read other SQL than the one that is installed."""
        if EXTENSIONS in self.target.spark:
            return f"target `{self.target.name}` sets {EXTENSIONS}, which may add another parser"
        if self.target.remote is not None:
            return f"target `{self.target.name}` uses another Spark, over Spark Connect"
        return None
