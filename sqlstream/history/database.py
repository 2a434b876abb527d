"""The SQLite files in the folder `logs`: created with their tables, and set aside if they cannot be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

LOCKED_SECONDS = 10.0
"""How long a statement waits for another process that writes. A transaction takes a fraction of a second."""

CACHE_KILOBYTES = 8_000
"""The memory that a connection uses for pages."""

_SIDE_FILES = ("-journal", "-wal", "-shm")


class UnusableFileError(Exception):
    """The file cannot be used; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class FileKind:
    """What a file contains. `application_id` marks it as one of sqlstream, and `version` is that of its `tables`, the
    statements that create them. `first_table` is read to find damage.

    `is_derived`: the file can be made again, so the last transactions need not survive a power cut. `lost` says what a
    new file means, as the end of a sentence. `columns` has declarations by table and name: an existing file gets those
    that it does not have.
    """

    contents: str
    application_id: int
    version: int
    tables: Sequence[str]
    first_table: str
    is_derived: bool
    lost: str
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def open_file(path: Path, kind: FileKind) -> tuple[sqlite3.Connection, str | None]:
    """Returns a connection to the file at `path`, which is created if it does not exist, and a sentence if an unusable
    file had to be set aside.

    Raises: OSError, sqlite3.Error if the file can be neither opened nor created.
    """
    try:
        return open_usable(path, kind), None
    except UnusableFileError:
        return _replaced(path, kind)


def open_usable(path: Path, kind: FileKind) -> sqlite3.Connection:
    """Returns a connection to a usable or new file. Raises: UnusableFileError, OSError, sqlite3.Error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = _connect(path)
    try:
        with _damage_reported():
            _tune(connection)
            _check(connection, kind)
    except BaseException:
        connection.close()
        raise
    return connection


def open_in_memory(kind: FileKind) -> sqlite3.Connection:
    """Returns empty tables that end with the process."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create(connection, kind)
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Returns a further connection to an existing file, for reading beside a writer."""
    connection = _connect(path)
    with _damage_reported():
        _tune(connection)
    connection.execute("PRAGMA query_only = 1")
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    # sqlite3 begins no transactions itself (isolation_level), and callers lock the connection when threads share it.
    return sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None, check_same_thread=False)


def _tune(connection: sqlite3.Connection) -> None:
    """Bounds the memory of a connection."""
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")


def _check(connection: sqlite3.Connection, kind: FileKind) -> None:
    """Creates missing tables. Raises: UnusableFileError for a file of another kind or version, sqlite3.Error."""
    is_new = _number(connection, "SELECT count(*) FROM sqlite_master") == 0
    if is_new and kind.is_derived:
        connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
    if kind.is_derived:
        connection.execute("PRAGMA synchronous = NORMAL")
    if is_new:
        _create(connection, kind)
    if _number(connection, "PRAGMA application_id") != kind.application_id:
        raise UnusableFileError(f"contains no {kind.contents} of sqlstream")
    version = _number(connection, "PRAGMA user_version")
    if version != kind.version:
        raise UnusableFileError(f"has the tables of another version of sqlstream ({version})")
    connection.execute(f"SELECT * FROM {kind.first_table} LIMIT 1").fetchone()
    if _missing_columns(connection, kind):
        with transaction(connection):
            for table, declared in _missing_columns(connection, kind):  # another process may have added them
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {declared}")


def _create(connection: sqlite3.Connection, kind: FileKind) -> None:
    """Creates the tables, unless another process has done so."""
    with transaction(connection):
        if _number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            for statement in kind.tables:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {kind.application_id}")
            connection.execute(f"PRAGMA user_version = {kind.version}")


def _missing_columns(connection: sqlite3.Connection, kind: FileKind) -> list[tuple[str, str]]:
    """Returns the tables and declarations of the columns that the file does not have yet."""
    found = []
    for table, columns in kind.columns.items():
        known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        found += [(table, declared) for name, declared in columns.items() if name not in known]
    return found


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commits what the body writes; writes nothing if it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _number(connection: sqlite3.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])


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


def _replaced(path: Path, kind: FileKind) -> tuple[sqlite3.Connection, str | None]:
    """Renames an unusable file and returns a new one. Of several processes, one does so."""
    from filelock import FileLock  # slow to import and rarely needed

    with FileLock(path.with_name(f".{path.name}.lock")):
        try:
            return open_usable(path, kind), None  # another process has replaced it
        except UnusableFileError as error:
            problem = set_aside(path, kind, str(error))
            return open_usable(path, kind), problem


def files_set_aside(path: Path) -> tuple[Path, ...]:
    """Returns the unusable files that `set_aside` has renamed, the newest last."""
    found = path.parent.glob(f"{path.name}.[0-9]*Z")
    return tuple(sorted(each for each in found if each.is_file()))


def set_aside(path: Path, kind: FileKind, why: str) -> str:
    """Renames an unusable file with its side files. Returns a sentence about it, in which `why` follows the name."""
    aside = path.with_name(f"{path.name}.{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%fZ}")
    for ending in ("", *_SIDE_FILES):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return f"{path.name} {why}; it was renamed to {aside.name}, and {kind.lost}"
