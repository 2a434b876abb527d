"""The file target/cache.sqlite: what compiling remembers from one command to the next.

It may be missing, cut off, of another version, or made by somebody else. Whatever is not whole is not used, and nothing
in it is ever run. Each entry has a digest of its own, since SQLite notices damage of its structure only. Whatever goes
wrong while the file is read or written, the command goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path

from sqlstream.compiler.cache.memory import Memory
from sqlstream.version import __version__

CACHE_FILE = "cache.sqlite"

WAIT_SECONDS = 1.0
"""How long to wait for another command that writes the file; reading goes on without it, and writing is left out."""

LIBRARIES = ("jinja2", "sqlglot", "PyYAML", "pydantic")
"""The libraries on whose version the result of compiling depends."""

_SCHEMA = "CREATE TABLE entries (kind TEXT, name TEXT, key TEXT, seal BLOB, text TEXT, PRIMARY KEY (kind, name))"
_LARGEST_TEXT = 50_000_000
"""Characters of one entry; no model comes near it."""

_Row = tuple[str, str, str, bytes, str]


class CompileCache:
    """The entries of one project's cache file, by kind and name: key and text."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CACHE_FILE
        self._versions = hashlib.blake2b(_versions().encode("utf-8", "surrogatepass"), digest_size=16)
        self._is_damaged = False
        self.entries = self._read_entries()

    def save(self, memory: Memory, names: Collection[str]) -> None:
        """Writes what `memory` has that is new, and drops the entries of all but `names`."""
        gone = {name for _, name in self.entries} - set(names)
        changed = {at: entry for at, entry in memory.new.items() if self.entries.get(at) != entry}
        if not changed and not gone and not self._is_damaged:
            return
        with suppress(OSError, sqlite3.Error, UnicodeError):  # the last for names of files that are no text
            try:
                self._make_room(replace=self._is_damaged)
                self._write(changed if self._path.exists() else {**self.entries, **memory.new}, gone)
            except sqlite3.OperationalError:
                raise  # most likely another command writes the file
            except sqlite3.DatabaseError:
                self._make_room(replace=True)
                self._write({**self.entries, **memory.new}, gone)

    # reading

    def _read_entries(self) -> dict[tuple[str, str], tuple[str, str]]:
        rows = self._rows()
        whole = {(kind, name): (key, text) for kind, name, key, text in self._whole(rows)}
        self._is_damaged = len(whole) < max(len(rows), 1)
        return whole

    def _rows(self) -> list[_Row]:
        """The rows of the file, none if it is not a file that this version has written."""
        try:
            if not self._is_own_file():
                return []
            with closing(self._connect("ro")) as connection:
                query = "SELECT kind, name, key, seal, text FROM entries"
                return connection.execute(query).fetchall() if _is_ours(connection) else []
        except (OSError, sqlite3.Error, UnicodeError):
            return []

    def _whole(self, rows: Sequence[_Row]) -> Iterator[tuple[str, str, str, str]]:
        for kind, name, key, seal, text in rows:
            with suppress(TypeError, AttributeError):
                if seal == self._seal(kind, name, key, text):
                    yield kind, name, key, text

    def _seal(self, *parts: str) -> bytes:
        """A digest of an entry and of all versions: an entry of other versions is none."""
        seal = self._versions.copy()
        seal.update("\0".join(("", *parts)).encode("utf-8", "surrogatepass"))
        return seal.digest()

    def _is_own_file(self) -> bool:
        """Whether there is an ordinary file: a link or a pipe was not made by sqlstream."""
        return self._path.is_file() and not self._path.is_symlink()

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_TEXT)
        return connection

    # writing

    def _make_room(self, *, replace: bool) -> None:
        """Removes what is at the file's path and not of this version; with `replace`, also what is."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(self._path) and (replace or not self._is_ours()):
            for ending in ("", "-journal", "-wal", "-shm"):
                self._path.with_name(CACHE_FILE + ending).unlink(missing_ok=True)

    def _is_ours(self) -> bool:
        if not self._is_own_file():
            return False
        with closing(self._connect("ro")) as connection:
            return _is_ours(connection)

    def _write(self, entries: Mapping[tuple[str, str], tuple[str, str]], gone: Collection[str]) -> None:
        with closing(self._connect("rwc")) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # what a power failure damages is made again
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS"))
            rows = [
                (kind, name, key, self._seal(kind, name, key, text), text)
                for (kind, name), (key, text) in entries.items()
                if name not in gone
            ]
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
            connection.executemany("DELETE FROM entries WHERE name = ?", [(name,) for name in gone])
            connection.execute("COMMIT")


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the file has exactly the table of this version: no view or trigger of another's making runs here."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return found == [(_SCHEMA,)]


def _versions() -> str:
    """All versions on which the result depends, sqlstream's own files with them, which change while it is developed."""
    installed = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    sources = [
        f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}"
        for folder in (Path(__file__).parents[2],)
        for file in sorted(Path(folder).rglob("*.py"))
    ]
    return "\n".join([__version__, sys.version, *installed, *sources])
