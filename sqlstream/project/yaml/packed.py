"""Parsed YAML as JSON and back, which is read several times faster than YAML.

A scalar is a list of line, column and text, and of its value where that is another one; a list is an object with its
place `at` and its `items`; a mapping has `entries` instead, each of key, line, column and value.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json, to_json

from sqlstream.location import Location
from sqlstream.project.yaml.nodes import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence


def pack(node: YamlMapping) -> str:
    """Returns a file's mapping as JSON."""
    return to_json(_packed(node)).decode()


def unpack(text: str, path: str) -> YamlMapping | None:
    """Returns the mapping of the file `path` that `pack` has written as `text`; None for any other text."""
    try:
        node = _Unpacker(path).node(from_json(text))
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return node if isinstance(node, YamlMapping) else None


def _packed(node: YamlNode) -> object:
    line, column = node.location.line, node.location.column
    if isinstance(node, YamlScalar):
        return [line, column, node.text, *([] if node.value == node.text else [node.value])]
    if isinstance(node, YamlSequence):
        return {"at": [line, column], "items": [_packed(item) for item in node.items]}
    entries = [
        [entry.key, entry.key_location.line, entry.key_location.column, _packed(entry.value)] for entry in node.entries
    ]
    return {"at": [line, column], "entries": entries}


class _Unpacker:
    """Makes the nodes of one file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def node(self, data: Any) -> YamlNode:
        if isinstance(data, list):
            line, column, text, *value = data
            return YamlScalar(value[0] if value else text, text, Location(self._path, line, column))
        location = Location(self._path, *data["at"])
        if "items" in data:
            return YamlSequence(tuple([self.node(item) for item in data["items"]]), location)
        entries = [
            YamlEntry(key, Location(self._path, line, column), self.node(value))
            for key, line, column, value in data["entries"]
        ]
        return YamlMapping(tuple(entries), location)
