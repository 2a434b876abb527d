"""What is remembered: entries by kind and name, each valid for one key, which is the digest of all it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from sqlstream.compiler.cache.codec import CodecError, decode, encode

T = TypeVar("T")

Entries = dict[tuple[str, str], tuple[str, str]]
"""Entries by kind and name: key and text."""

TREE = "tree"
"""The kind of the entries that are read one by one, since most compilations need none of them."""


class EntryStore(Protocol):
    """Where entries were kept by an earlier compilation."""

    def read(self, kind: str, name: str) -> tuple[str, str] | None:
        """Returns the key and the text of an entry, None where there is none or none that is whole."""


class Nothing:
    """A storage that holds nothing."""

    def read(self, kind: str, name: str) -> tuple[str, str] | None:
        """Returns None."""
        del kind, name
        return None


class Memory:
    """The entries of earlier compilations, and the new ones of this one.

    An entry is asked for with the key that it must have, so a stale one is never used. `new` are the entries that
    `storage` does not have, by kind and name: key and text. `values` are what was noted in this
    process, trees aside: nobody changes them.
    """

    def __init__(self, storage: EntryStore | None = None) -> None:
        self._storage = storage or Nothing()
        self.new: Entries = {}
        self.values: dict[tuple[str, str], tuple[str, object]] = {}
        self._awaited: Callable[[], Entries | None] | None = None

    def copy(self) -> Memory:
        """Returns a memory that knows the same and shares the values, and whose new entries are its own."""
        copied = Memory(self._storage)
        copied.new, copied.values = dict(self.new), self.values
        return copied

    @contextmanager
    def awaiting(self, entries: Callable[[], Entries | None]) -> Iterator[None]:
        """Knows that something else is making entries, which `settle` waits for as long as the body runs."""
        self._awaited = entries
        try:
            yield
        finally:
            self._awaited = None

    def settle(self) -> None:
        """Takes over the entries that are awaited; called before work that they may save."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            self.new.update(awaited() or {})

    def has(self, kind: str, name: str) -> bool:
        """Returns whether an earlier compilation noted anything under that name, stale or not."""
        return self._storage.read(kind, name) is not None

    def recall(self, kind: str, name: str, key: str, find: Callable[[str], object] | None = None) -> Any:
        """Returns what was noted under that key, None where nothing was; `find` is as for `decode`."""
        made = self.values.get((kind, name))
        if made is not None and made[0] == key:
            return made[1]
        text = self.recall_text(kind, name, key)
        if text is None:
            return None
        try:
            return decode(text, find)
        except CodecError:
            return None

    def note(self, kind: str, name: str, key: str, value: object, elsewhere: Mapping[int, str] | None = None) -> None:
        """Notes `value`, unless it is of a kind that cannot be kept; `elsewhere` is as for `encode`."""
        try:
            self.new[kind, name] = (key, encode(value, elsewhere))
        except CodecError:
            self.new.pop((kind, name), None)
            return
        if kind != TREE:
            self.values[kind, name] = (key, value)

    def recall_text(self, kind: str, name: str, key: str) -> str | None:
        """Returns the text that was noted under that key, None where none was."""
        entry = self.new.get((kind, name)) or self._storage.read(kind, name)
        return None if entry is None or entry[0] != key else entry[1]

    def note_text(self, kind: str, name: str, key: str, text: str) -> None:
        """Notes a text as it is."""
        self.new[kind, name] = (key, text)

    def remember(self, kind: str, name: str, key: str, make: Callable[[], T]) -> T:
        """Returns what was noted under that key, or else what `make` gives, which is noted."""
        found = self.recall(kind, name, key)
        if found is None:
            found = make()
            self.note(kind, name, key, found)
        return cast("T", found)
