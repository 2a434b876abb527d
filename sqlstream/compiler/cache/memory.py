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

    Callers look an entry up with the key that it must have, so they never get a stale one.
    """

    def __init__(self, saved: Mapping[tuple[str, str], tuple[str, str]] | None = None) -> None:
        self._saved = saved or {}
        self.new: Entries = {}

    def recall(self, kind: str, name: str, key: str) -> Any:
        """Returns the value with that key, or None."""
        entry = self.new.get((kind, name)) or self._saved.get((kind, name))
        if entry is None or entry[0] != key:
            return None
        try:
            return decode(entry[1])
        except CodecError:
            return None

    def note(self, kind: str, name: str, key: str, value: object) -> None:
        """Stores `value`, unless its type cannot be encoded."""
        try:
            self.new[kind, name] = (key, encode(value))
        except CodecError:
            self.new.pop((kind, name), None)

    def remember(self, kind: str, name: str, key: str, make: Callable[[], T]) -> T:
        """Returns the value with that key. If there is none, calls `make` and stores its result."""
        found = self.recall(kind, name, key)
        if found is None:
            found = make()
            self.note(kind, name, key, found)
        return cast("T", found)
