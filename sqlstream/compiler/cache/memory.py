"""Results of earlier compilations: entries by kind and name, each with a key, the digest of all its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from sqlstream.compiler.cache.codec import CodecError, decode, encode

T = TypeVar("T")

Entries = dict[tuple[str, str], tuple[str, str]]
"""The key and text of each entry, by kind and name."""


class Memory:
    """The entries of earlier compilations (`saved`) and of this one (`new`).

    Callers look an entry up with the key that it must have, so they never get a stale one. `values` has the objects
    noted by this process, except those with parts stored elsewhere. Callers must not change them.
    """

    def __init__(self, saved: Mapping[tuple[str, str], tuple[str, str]] | None = None) -> None:
        self._saved = saved or {}
        self.new: Entries = {}
        self.values: dict[tuple[str, str], tuple[str, object]] = {}

    def recall(self, kind: str, name: str, key: str, find: Callable[[str], object] | None = None) -> Any:
        """Returns the value with that key, or None. `find` is passed to `decode`."""
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
        """Stores `value`, unless its type cannot be encoded. `elsewhere` is passed to `encode`."""
        try:
            self.new[kind, name] = (key, encode(value, elsewhere))
        except CodecError:
            self.new.pop((kind, name), None)
            return
        if elsewhere is None:
            self.values[kind, name] = (key, value)

    def recall_text(self, kind: str, name: str, key: str) -> str | None:
        """Returns the text with that key, or None."""
        entry = self.new.get((kind, name)) or self._saved.get((kind, name))
        return None if entry is None or entry[0] != key else entry[1]

    def note_text(self, kind: str, name: str, key: str, text: str) -> None:
        """Stores a text without encoding it."""
        self.new[kind, name] = (key, text)

    def remember(self, kind: str, name: str, key: str, make: Callable[[], T]) -> T:
        """Returns the value with that key. If there is none, calls `make` and stores its result."""
        found = self.recall(kind, name, key)
        if found is None:
            found = make()
            self.note(kind, name, key, found)
        return cast("T", found)
