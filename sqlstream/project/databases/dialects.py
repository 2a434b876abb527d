"""Finds the dialect of a sink."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.project.connectors.table import JDBC_DRIVERS
from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.mysql import MARIADB, MYSQL
from sqlstream.project.databases.postgresql import POSTGRESQL
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.project.secrets import OptionValue

_OF_SERVERS = {dialect.name: dialect for dialect in (POSTGRESQL, MARIADB, MYSQL)}


def dialect_of(format_name: str, options: Mapping[str, OptionValue]) -> Dialect | None:
    """Returns the dialect of a database that sqlstream writes, None for other sinks and if the URL is a secret."""
    if format_name == "sqlite":
        return SQLITE
    url = next((str(value) for name, value in options.items() if name.lower() == "url"), "")
    found = next((name for start, name in JDBC_DRIVERS.items() if url.startswith(start)), None)
    return _OF_SERVERS[found] if format_name == "jdbc" and found is not None else None
