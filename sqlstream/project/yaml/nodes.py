"""YAML as frozen nodes with locations, and lookups in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlstream.location import Location


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A single value: `value` as YAML reads it (None, bool, int, float, str), `text` as in the file. After rendering,
    `value` can also be a `SecretText`.
    """

    value: object
    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class YamlSequence:
    """A list."""

    items: tuple[YamlNode, ...]
    location: Location


class YamlEntry(NamedTuple):
    """One key of a mapping, its location, and its value."""

    key: str
    key_location: Location
    value: YamlNode


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A mapping with its entries in the order of the file. No key is repeated."""

    entries: tuple[YamlEntry, ...]
    location: Location

    def entry(self, key: object) -> YamlEntry | None:
        """Returns the entry of `key`, or None."""
        for entry in self.entries:
            if entry.key == key:
                return entry
        return None

    def get(self, key: object) -> YamlNode | None:
        """Returns the value of `key`, or None without it."""
        entry = self.entry(key)
        return entry.value if entry else None

    def where(self, keep: Callable[[YamlEntry], bool]) -> YamlMapping:
        """Returns the mapping with only the entries that `keep` accepts."""
        return YamlMapping(tuple(filter(keep, self.entries)), self.location)


YamlNode = YamlScalar | YamlSequence | YamlMapping


def plain(node: YamlNode) -> object:
    """Returns the node as plain Python values: dict, list, and the values of scalars."""
    if isinstance(node, YamlScalar):
        return node.value
    if isinstance(node, YamlSequence):
        return [plain(item) for item in node.items]
    return {entry.key: plain(entry.value) for entry in node.entries}


def from_plain(value: object, location: Location) -> YamlNode:
    """Returns plain Python values as a node, completely located at `location`. The text of a scalar is its `str()`."""
    if isinstance(value, dict):
        entries = (YamlEntry(str(key), location, from_plain(item, location)) for key, item in value.items())
        return YamlMapping(tuple(entries), location)
    if isinstance(value, list | tuple):
        return YamlSequence(tuple(from_plain(item, location) for item in value), location)
    return YamlScalar(value, str(value).lower() if isinstance(value, bool) else str(value), location)


def follow(node: YamlNode, path: Sequence[str | int]) -> YamlNode | None:
    """Returns the node at a path of keys and indexes, or None if it does not exist."""
    current: YamlNode | None = node
    for part in path:
        if current is None:
            return None
        current = _child(current, part)
    return current


def entries_at(node: YamlNode, path: Sequence[str | int]) -> tuple[YamlEntry, ...]:
    """Returns the entries of the mapping at a path of keys and indexes; empty if it does not exist."""
    found = follow(node, path)
    return found.entries if isinstance(found, YamlMapping) else ()


def locate(node: YamlNode, path: Sequence[str | int]) -> Location:
    """Returns the location of the value at a path of keys and indexes, or of its nearest existing parent.

    For a mapping or list it is the location of the key, because the value begins on a later line.
    """
    current, location = node, node.location
    for part in path:
        entry = current.entry(part) if isinstance(current, YamlMapping) else None
        child = entry.value if entry else _child(current, part)
        if child is None:
            return location
        location = entry.key_location if entry and not isinstance(child, YamlScalar) else child.location
        current = child
    return location


def merge_nodes(base: YamlNode, over: YamlNode) -> YamlNode:
    """Returns `base` merged with `over`, mappings key by key. Each value keeps its location."""
    if not isinstance(base, YamlMapping) or not isinstance(over, YamlMapping):
        return over
    merged = {entry.key: entry for entry in base.entries}
    for entry in over.entries:
        below = merged.get(entry.key)
        merged[entry.key] = entry._replace(value=merge_nodes(below.value, entry.value)) if below else entry
    return YamlMapping(tuple(merged.values()), base.location)


def _child(node: YamlNode, part: str | int) -> YamlNode | None:
    if isinstance(node, YamlMapping):
        return node.get(part)
    if isinstance(node, YamlSequence) and isinstance(part, int) and 0 <= part < len(node.items):
        return node.items[part]
    return None
