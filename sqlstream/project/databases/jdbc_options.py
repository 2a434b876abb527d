"""The options of a database: the dialect that its URL names, options of Spark, and those of the driver's connection."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlstream.project.connectors.connectors import JDBC_DRIVERS
from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.mysql import MARIADB, MYSQL
from sqlstream.project.databases.postgresql import POSTGRESQL
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.project.secret_text import OptionValue

_OF_SERVERS = {dialect.name: dialect for dialect in (POSTGRESQL, MARIADB, MYSQL)}

DRIVER_CLASSES = {name: dialect.driver for name, dialect in _OF_SERVERS.items()}
"""The classes of the JDBC drivers by the name of their connector."""

OF_SPARK = frozenset(
    """
    url dbtable query driver partitioncolumn lowerbound upperbound numpartitions querytimeout fetchsize truncate
    cascadetruncate createtableoptions createtablecolumntypes customschema batchsize isolationlevel sessioninitstatement
    pushdownpredicate pushdownaggregate pushdownlimit pushdownoffset pushdowntablesample keytab principal
    refreshkrb5config connectionprovider prefertimestampntz hint preparequery
    """.split()  # noqa: SIM905 - a list of words in quotes is harder to read
)
"""The options that Spark does not pass to the driver, in lower case (org.apache.spark.sql.execution.datasources.jdbc.
JDBCOptions). Every other option is a connection property."""

UNUSED = frozenset({"truncate", "cascadetruncate", "createtableoptions", "createtablecolumntypes"})
"""Options of Spark's writer that have no effect, because sqlstream creates and empties the tables itself."""

SESSION = "sessionVariables"
"""The option of MariaDB's driver for the settings of a session."""


def dialect_of(format_name: str, options: Mapping[str, OptionValue]) -> Dialect | None:
    """Returns the dialect of a database that sqlstream writes, None for other sinks and if the URL is a secret."""
    if format_name == "sqlite":
        return SQLITE
    url = next((str(value) for name, value in options.items() if name.lower() == "url"), "")
    found = next((name for start, name in JDBC_DRIVERS.items() if url.startswith(start)), None)
    return _OF_SERVERS[found] if format_name == "jdbc" and found is not None else None


_PART = re.compile(r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^."`]+)$')
_SERVER = re.compile(r"//(?:[^/@]*@)?(?P<server>[^/?;]+)")


def last_part(table: str) -> str:
    """Returns the name of a table without its schema."""
    match = _PART.search(table)
    return match.group() if match else table


def server_of(url: str) -> str:
    """Returns the host and port in a JDBC URL, without user and password."""
    match = _SERVER.search(url)
    return match["server"] if match else "its URL"


def connection_properties(dialect: Dialect, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of a connection: those of the user, and the dialect's for bulk writes."""
    url = next((value.lower() for name, value in options.items() if name.lower() == "url"), "")
    given = {name: value for name, value in options.items() if name.lower() not in OF_SPARK}
    taken = {name.lower() for name in given}
    added = {
        name: value
        for name, value in dialect.bulk_options.items()
        if name.lower() not in taken and f"{name.lower()}=" not in url
    }
    return {**added, **given}


def writer_options(dialect: Dialect, options: Mapping[str, str], table: str) -> dict[str, str]:
    """Returns the options with which Spark's JDBC writer adds rows to `table`."""
    dropped = UNUSED | {"dbtable"}
    kept = {name: value for name, value in options.items() if name.lower() in OF_SPARK - dropped}
    names = {name.lower() for name in kept}
    driver = {} if "driver" in names else {"driver": dialect.driver}
    return {**driver, **kept, **connection_properties(dialect, options), "dbtable": table}


def reader_options(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of a source with the driver's class and, for MariaDB, the quotes that Spark uses.

    Without the class, java.sql.DriverManager does not find a driver that Spark has loaded as a jar.
    """
    dialect = dialect_of("jdbc", options)
    if dialect is None:
        return dict(options)
    names = {name.lower() for name in options}
    url = next(value for name, value in options.items() if name.lower() == "url")
    added = {"driver": dialect.driver}
    if SESSION in dialect.bulk_options and f"{SESSION}=" not in url:
        added[SESSION] = dialect.bulk_options[SESSION]
    return {**{name: value for name, value in added.items() if name.lower() not in names}, **options}
