"""The file target/cache.sqlite, in which the compiler stores results for the next command.

The file may be missing, truncated, from another version, or from another program. Damaged entries are ignored, and
nothing in the file is ever executed. Each entry has its own digest, because SQLite only detects damage to its
structure. If the file cannot be read or written, the command continues without it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path

from sqlstream.compiler.cache import Memory
from sqlstream.version import __version__

CACHE_FILE = "cache.sqlite"

WAIT_SECONDS = 1.0
"""How long to wait while another command writes the file. After that, this command does without the cache."""

LIBRARIES = ("jinja2", "sqlglot", "pydantic")
"""Libraries whose versions affect the result of compiling."""

_SCHEMA = "CREATE TABLE entries (name TEXT PRIMARY KEY, seal BLOB, text TEXT)"
_LARGEST_TEXT = 50_000_000
"""Characters of one entry, far more than any model needs."""

_Row = tuple[str, bytes, str]


class CompileCache:
    """The cache file of one project. `entries` are texts by name."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CACHE_FILE
        self._versions = hashlib.blake2b(_versions().encode("utf-8", "surrogatepass"), digest_size=16)
        self._is_damaged = False
        self.entries = self._read_entries()

    def save(self, memory: Memory, names: Collection[str]) -> None:
        """Writes the new entries of `memory`, and deletes all entries whose name is not in `names`."""
        gone = self.entries.keys() - set(names)
        changed = {name: text for name, text in memory.new.items() if self.entries.get(name) != text}
        if not changed and not gone and not self._is_damaged:
            return
        with suppress(OSError, sqlite3.Error, UnicodeError):  # UnicodeError: file names that are not valid text
            try:
                self._make_room(replace=self._is_damaged)
                self._write(changed if self._path.exists() else {**self.entries, **memory.new}, gone)
            except sqlite3.OperationalError:
                raise  # most likely another command is writing the file
            except sqlite3.DatabaseError:
                self._make_room(replace=True)
                self._write({**self.entries, **memory.new}, gone)

    # reading

    def _read_entries(self) -> dict[str, str]:
        rows = self._rows()
        intact = {name: text for name, _, text in filter(self._is_intact, rows)}
        self._is_damaged = len(intact) < max(len(rows), 1)
        return intact

    def _rows(self) -> list[_Row]:
        """Returns the rows of the file; none if this version did not write it."""
        try:
            if not self._is_own_file():
                return []
            with closing(self._connect("ro")) as connection:
                query = "SELECT name, seal, text FROM entries"
                return connection.execute(query).fetchall() if _is_ours(connection) else []
        except (OSError, sqlite3.Error, UnicodeError):
            return []

    def _is_intact(self, row: _Row) -> bool:
        """Whether the seal fits. A damaged row may contain values of other types."""
        name, seal, text = row
        try:
            return seal == self._seal(name, text)
        except (TypeError, AttributeError):
            return False

    def _seal(self, *parts: str) -> bytes:
        """Returns a digest of an entry and of all versions, so that entries of other versions are ignored."""
        seal = self._versions.copy()
        seal.update("\0".join(("", *parts)).encode("utf-8", "surrogatepass"))
        return seal.digest()

    def _is_own_file(self) -> bool:
        """Whether there is a regular file. sqlstream never creates a link or a pipe."""
        return self._path.is_file() and not self._path.is_symlink()

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_TEXT)
        return connection

    # writing

    def _make_room(self, *, replace: bool) -> None:
        """Removes the file if this version did not write it, or in any case with `replace`."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(self._path) and (replace or not self._is_ours()):
            for ending in ("", "-journal", "-wal", "-shm"):
                self._path.with_name(CACHE_FILE + ending).unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        if not self._is_own_file():
            return False
        with closing(self._connect("ro")) as connection:
            return _is_ours(connection)

    def _write(self, entries: Mapping[str, str], gone: Collection[str]) -> None:
        with closing(self._connect("rwc")) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # entries that a power failure damages are written again
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS"))
            rows = [(name, self._seal(name, text), text) for name, text in entries.items() if name not in gone]
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", rows)
            connection.executemany("DELETE FROM entries WHERE name = ?", [(name,) for name in gone])
            connection.execute("COMMIT")


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the file has exactly the table of this version, and no view or trigger that could run here."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return found == [(_SCHEMA,)]


def _versions() -> str:
    """Returns all versions that affect the result, including sqlstream's source files, which developers change."""
    # the whole text, because parsing it for the version takes longer than all the rest here
    installed = [metadata.distribution(name).read_text("METADATA") or "" for name in LIBRARIES]
    sources = [
        f"{name} {(status := os.stat(os.path.join(folder, name))).st_size} {status.st_mtime_ns}"  # noqa: PTH116, PTH118
        for folder, _, names in os.walk(Path(__file__).parents[2])  # several times as fast as pathlib
        for name in names
        if name.endswith(".py")
    ]
    return "\n".join([__version__, sys.version, *installed, *sorted(sources)])
