"""Connections to PostgreSQL, MariaDB and MySQL through drivers in Python, for processes without a JVM."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.logins import Login, Tls
from sqlstream.project.databases.mysql import name_parts
from sqlstream.spark.writing.databases.database import FoundColumn

LOST = "08006"
"""The SQLSTATE of a connection that has ended."""

UNREACHED = "08001"
"""The SQLSTATE of a server that cannot be reached."""

_REFUSED = "28000"
"""The SQLSTATE of a refused login."""


class DriverError(Exception):
    """An error of a driver or of its database. `state` is as in `DatabaseError`."""

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state


class DriverConnection(Protocol):
    """A connection of a driver. Values are texts, as the database writes them. All methods but `close` raise the
    driver's errors.
    """

    def begin(self) -> None:
        """Begins a transaction."""

    def run(self, statement: str) -> None:
        """Runs a statement without result."""

    def all(self, query: str) -> Sequence[Sequence[str | None]]:
        """Returns all rows of a query."""

    def commit(self) -> None:
        """Ends the transaction."""

    def rollback(self) -> None:
        """Ends a transaction without its changes, if one has begun."""

    def columns(self, table: str) -> tuple[FoundColumn, ...]:
        """Returns the columns of a table, with the names that the JDBC driver has for their types."""

    def close(self) -> None:
        """Closes the connection, also a broken one. A transaction that has not ended changes nothing."""


def open_connection(dialect: Dialect, login: Login) -> DriverConnection:
    """Returns a new connection. Raises: DriverError; ModuleNotFoundError if the driver is not installed."""
    if dialect.name == "postgresql":
        return _PostgresqlConnection(login)
    return _MysqlConnection(dialect, login)


def _tls_context(login: Login) -> ssl.SSLContext:
    """Returns the context of a connection that must be encrypted. Raises: DriverError if its file cannot be read."""
    try:
        context = ssl.create_default_context(cafile=login.ca or None)
    except (OSError, ssl.SSLError) as error:
        raise DriverError(f"the certificates in {login.ca} cannot be read: {error}") from error
    # certificates that companies issue themselves often lack extensions that only Python's newest default wants
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = login.tls is Tls.FULL
    if login.tls not in (Tls.VERIFIED, Tls.FULL):
        context.verify_mode = ssl.CERT_NONE
    return context


class _PostgresqlConnection:
    def __init__(self, login: Login) -> None:
        from pg8000 import native  # an extra

        self._errors: tuple[type[Exception], ...] = (native.InterfaceError, native.DatabaseError, OSError)
        self._is_open = False
        context = {Tls.OFF: False, Tls.PREFERRED: None}[login.tls] if login.tls in _LOOSE else _tls_context(login)
        with self._reported():
            connected = _connected(login)
            try:
                self._connection: Any = native.Connection(
                    login.user,
                    host=login.host,
                    port=login.port,
                    database=login.database,
                    password=login.password or None,
                    ssl_context=context,
                    application_name=login.application or None,
                    startup_params=dict(login.startup),
                    sock=connected,
                )
            except BaseException:
                connected.close()
                raise
            for oid in tuple(self._connection.pg_types):
                self._connection.register_in_adapter(oid, str)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise _postgresql_error(error) from None

    def begin(self) -> None:
        self.run("BEGIN")
        self._is_open = True

    def run(self, statement: str) -> None:
        with self._reported():
            self._connection.run(statement)

    def all(self, query: str) -> Sequence[Sequence[str | None]]:
        with self._reported():
            return list(self._connection.run(query) or ())

    def commit(self) -> None:
        self.run("COMMIT")
        self._is_open = False

    def rollback(self) -> None:
        if self._is_open:
            self._is_open = False
            self.run("ROLLBACK")

    def columns(self, table: str) -> tuple[FoundColumn, ...]:
        self.run(f"SELECT * FROM {table} WHERE 1 = 0")
        found = self._connection.columns or []
        types = {str(each["type_oid"]) for each in found} or {"0"}
        names = dict(self._type_names(types))
        numbered = set(self._numbered({str(each["table_oid"]) for each in found} or {"0"}))
        return tuple(
            _postgresql_column(
                each["name"],
                names[str(each["type_oid"])],
                each["type_modifier"],
                is_numbered=(str(each["table_oid"]), str(each["column_attrnum"])) in numbered,
            )
            for each in found
        )

    def _type_names(self, oids: set[str]) -> Iterator[tuple[str, str]]:
        query = (
            "SELECT t.oid, CASE WHEN n.nspname = ANY(current_schemas(true)) THEN t.typname::text "
            "ELSE '\"' || n.nspname || '\".\"' || t.typname || '\"' END "
            f"FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN ({', '.join(oids)})"
        )
        return ((str(oid), str(name)) for oid, name in self.all(query))

    def _numbered(self, tables: set[str]) -> Iterator[tuple[str, str]]:
        query = (
            "SELECT a.attrelid, a.attnum FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid "
            f"AND d.adnum = a.attnum WHERE a.attrelid IN ({', '.join(tables)}) AND a.attnum > 0 AND "
            "(a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%')"
        )
        return ((str(table), str(number)) for table, number in self.all(query))

    def close(self) -> None:
        with suppress(*self._errors):  # a closed connection rolls back
            self._connection.close()


_LOOSE = (Tls.OFF, Tls.PREFERRED)


def _connected(login: Login) -> socket.socket:
    """Returns a connected socket with the limits of `login`. Raises: DriverError."""
    try:
        found = socket.create_connection((login.host, login.port), login.connect_seconds)
    except OSError as error:
        raise DriverError(f"cannot connect to {login.host}:{login.port}: {error}", UNREACHED) from None
    found.settimeout(login.read_seconds)
    if login.keep_alive:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return found


def _postgresql_error(error: Exception) -> DriverError:
    """Returns the error of a server with its details, as JDBC has them, or that of a connection."""
    fields = error.args[0] if error.args else ""
    if not isinstance(fields, dict):
        cause = f": {error.__cause__}" if error.__cause__ is not None else ""
        if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
            return DriverError(f"{error}{cause}", _REFUSED)  # trying again changes no certificate
        is_lost = isinstance(error, OSError) or "network error" in str(error)
        return DriverError(f"{error}{cause}", LOST if is_lost else "")
    text = f"{fields.get('S', 'ERROR')}: {fields.get('M', '')}"
    for key, name in (("D", "Detail"), ("H", "Hint"), ("P", "Position"), ("W", "Where")):
        text += f" {name}: {fields[key]}" if key in fields else ""
    return DriverError(text, str(fields.get("C", "")))


_SERIALS = {"int2": "smallserial", "int4": "serial", "int8": "bigserial"}
"""What JDBC calls the types of columns whose values the database numbers."""


def _postgresql_column(name: str, type_: str, modifier: int, *, is_numbered: bool) -> FoundColumn:
    digits, characters = None, None
    if type_ == "numeric" and modifier >= 0:
        precision, scale = (modifier - 4) >> 16, modifier - 4 & 0xFFFF
        digits = (precision - scale, scale)
    if type_ in ("varchar", "bpchar") and modifier >= 0:
        characters = modifier - 4
    if type_ == "char":
        characters = 1
    shown = _SERIALS.get(type_, type_) if is_numbered else type_
    return FoundColumn(name, shown.lower(), digits, characters, is_numbered)


class _MysqlConnection:
    def __init__(self, dialect: Dialect, login: Login) -> None:
        import pymysql  # an extra

        self._dialect = dialect
        self._errors: tuple[type[Exception], ...] = (pymysql.MySQLError, OSError, RuntimeError)
        self._is_open = False
        may_be_plain = login.tls in _LOOSE
        context = None if may_be_plain else _tls_context(login)
        with self._reported():
            self._connection: Any = pymysql.connect(
                host=login.host,
                port=login.port,
                database=login.database or None,
                user=login.user,
                password=login.password.encode(),  # a text would be sent as Latin-1
                charset="utf8mb4",
                autocommit=True,
                conv=pymysql.converters.encoders,  # without decoders, so values stay texts
                connect_timeout=login.connect_seconds or _NO_LIMIT_SECONDS,
                read_timeout=login.read_seconds,
                write_timeout=login.read_seconds,
                ssl=context,
                ssl_disabled=login.tls is Tls.OFF,
                # as JDBC drivers, which send no password that others could read
                auth_plugin_map=dict.fromkeys(_CLEAR, _RefusedPlugin) if may_be_plain else None,
                server_public_key=_NO_KEY if may_be_plain and not login.fetches_key else None,
            )
        try:
            for statement in login.session:
                self.run(statement)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise _mysql_error(error) from None
        except ValueError as error:
            if "key" not in str(error).lower() and "PEM" not in str(error):
                raise
            why = "it asks for the password without TLS, which needs `sslMode` with TLS, or `allowPublicKeyRetrieval`"
            raise DriverError(why, _REFUSED) from None

    def begin(self) -> None:
        with self._reported():
            self._connection.autocommit(False)
        self._is_open = True

    def run(self, statement: str) -> None:
        self.all(statement)

    def all(self, query: str) -> Sequence[Sequence[str | None]]:
        with self._reported(), self._connection.cursor() as cursor:
            cursor.execute(query)
            return [tuple(_text(value) for value in row) for row in cursor.fetchall()]

    def commit(self) -> None:
        with self._reported():
            self._connection.commit()
            self._is_open = False
            self._connection.autocommit(True)

    def rollback(self) -> None:
        if self._is_open:
            self._is_open = False
            with self._reported():
                self._connection.rollback()
                self._connection.autocommit(True)

    def columns(self, table: str) -> tuple[FoundColumn, ...]:
        with self._reported(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} WHERE 1 = 0")
            names = [str(each[0]) for each in cursor.description]
        schema, name = name_parts(table)
        described = self.all(
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, character_maximum_length, "
            f"extra FROM information_schema.columns WHERE table_schema = {schema} AND table_name = {name}"
        )
        found = {str(row[0]): _mysql_column(self._dialect, *map(_shown, row)) for row in described}
        return tuple(found[name] for name in names)

    def close(self) -> None:
        with suppress(*self._errors):  # a closed connection rolls back
            self._connection.close()


_CLEAR = ("mysql_clear_password", "dialog")
"""The ways to log in that send the password as it is."""

_NO_KEY = b"none"
"""A key of a server with which nothing can be encrypted. Without one, PyMySQL asks the server for its key."""


class _RefusedPlugin:
    """A way to log in for which a server asks, and that needs TLS."""

    def __init__(self, connection: object) -> None:
        del connection

    def authenticate(self, packet: object) -> None:
        """Raises: DriverError."""
        del packet
        raise DriverError("it asks for the password in clear, which needs `sslMode` with TLS", _REFUSED)


_NO_LIMIT_SECONDS = 31_536_000
"""The longest time limit of PyMySQL, a year: without a limit it would use ten seconds."""

_LOST_CODES = {2003: UNREACHED, 2006: LOST, 2013: LOST, 2014: LOST, 2026: _REFUSED}
"""The errors that PyMySQL itself reports, without a SQLSTATE: the server is not reached, has gone, or has no TLS
that is accepted."""


def _text(value: object) -> str | None:
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    return None if value is None else str(value)


def _shown(value: str | None) -> str:
    return value or ""


_NAMES = {
    "mariadb": {
        "int": "integer",
        "tinyint(1)": "boolean",
        "enum": "char",
        "set": "char",
        "inet6": "char",
        "inet4": "char",
    },
    "mysql": {"tinyint(1)": "bit", "enum": "char", "set": "char", "inet6": "char", "inet4": "char", "uuid": "char"},
}
"""What the JDBC drivers of MariaDB and MySQL call types of the server."""

_LENGTHS = {"uuid": "36", "inet6": "39", "inet4": "15"}


def _mysql_column(
    dialect: Dialect, name: str, kind: str, written: str, precision: str, scale: str, length: str, extra: str
) -> FoundColumn:
    kind, names = kind.lower(), _NAMES[dialect.name]
    type_ = names.get(written.lower(), names.get(kind, kind))
    if "unsigned" in written.lower():
        type_ += " unsigned"
    digits = (int(precision) - int(scale), int(scale)) if type_ == "decimal" else None
    length = _LENGTHS.get(kind, length)
    characters = int(length) if type_ in ("char", "varchar") and length else None
    return FoundColumn(name, type_, digits, characters, "auto_increment" in extra.lower())


def _mysql_error(error: Exception) -> DriverError:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    message = str(error.args[1]) if len(error.args) > 1 else str(error)
    state = getattr(error, "sqlstate", None)
    if state:
        return DriverError(message, f"{state}, error {code}" if code else str(state))
    return DriverError(message, _LOST_CODES.get(code, LOST if isinstance(error, OSError) else ""))
