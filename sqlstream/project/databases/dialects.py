"""Finds the dialect of a sink."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.project.secrets import OptionValue


def dialect_of(format_name: str, _options: Mapping[str, OptionValue]) -> Dialect | None:
    """Returns the dialect of a database that sqlstream writes, None for other sinks."""
    return SQLITE if format_name == "sqlite" else None
