"""The file history.sqlite: opened, created, and set aside if it is damaged or belongs to another version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlstream.history.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES

HISTORY = "history.sqlite"
"""The name of the file, beside events.jsonl."""

LOCKED_SECONDS = 5.0
"""How long a statement waits for another process that writes. A transaction takes a fraction of a second."""

CACHE_KILOBYTES = 8_000
"""The memory that a connection uses for pages."""

SIDE_FILES = ("-wal", "-shm")


class UnusableFileError(Exception):
    """The file cannot be used; the message says why, as the end of a sentence."""


def open_database(path: Path) -> tuple[sqlite3.Connection, str | None]:
    """Returns a connection to the history at `path`, which is created if it does not exist, and a sentence if an
    unusable file had to be set aside.

    Raises: OSError, sqlite3.Error if the file can be neither opened nor created.
    """
    try:
        return _connected(path), None
    except UnusableFileError:
        return _replaced(path)


def open_in_memory() -> sqlite3.Connection:
    """Returns an empty history that ends with the process."""
    found = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create(found)
    return found


def read_connection(path: Path) -> sqlite3.Connection:
    """Returns a further connection to an existing history, for reading beside a writer."""
    connection = _connect(path)
    _tune(connection)
    connection.execute("PRAGMA query_only = 1")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None, check_same_thread=False)


def _tune(connection: sqlite3.Connection) -> None:
    """Bounds the memory of a connection. Raises: UnusableFileError."""
    with _damage_reported():
        connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")


def _connected(path: Path) -> sqlite3.Connection:
    """Returns a connection to a usable history. Raises: UnusableFileError, OSError, sqlite3.Error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = _connect(path)
    try:
        _tune(connection)
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    with _damage_reported():
        if _number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
            connection.execute("PRAGMA synchronous = NORMAL")
            _create(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose the last lines: they are read again
        if _number(connection, "PRAGMA application_id") != APPLICATION_ID:
            raise UnusableFileError("is not a history of sqlstream")
        version = _number(connection, "PRAGMA user_version")
        if version != SCHEMA_VERSION:
            raise UnusableFileError(f"has the tables of another version of sqlstream ({version})")
        connection.execute("SELECT max(id) FROM runs").fetchone()


@contextmanager
def _damage_reported() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise UnusableFileError(f"is damaged ({error})") from error
        raise


def is_damage(error: sqlite3.Error) -> bool:
    """Returns whether an error means that the file is no SQLite database, or a damaged one."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ERROR)


def _number(connection: sqlite3.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])


def _create(connection: sqlite3.Connection) -> None:
    """Creates the tables, unless another process has done so."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _replaced(path: Path) -> tuple[sqlite3.Connection, str | None]:
    """Renames an unusable file and returns a new one. Of several processes, one does so."""
    from filelock import FileLock  # slow to import and rarely needed

    with FileLock(path.with_name(f".{path.name}.lock")):
        try:
            return _connected(path), None  # another process has replaced it
        except UnusableFileError as error:
            aside = set_aside(path)
            what = f"{path.name} {error}; it was renamed to {aside.name}, and the history starts again from the journal"
            return _connected(path), what


def set_aside(path: Path) -> Path:
    """Renames a history with its side files, and returns the new path."""
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%fZ}"
    aside = path.with_name(f"{path.name}.{moment}")
    for ending in ("", *SIDE_FILES):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return aside
