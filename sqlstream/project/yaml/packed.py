"""Parsed YAML as one flat JSON list and back, which is read several times faster than YAML, however deep it nests.

Each node is its kind, its line and its column, and then: of a scalar its text, and its value where that is another
one; of a list the number of its items, and those; of a mapping the number of its entries, and each as key, the key's
line and column, and value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_core import from_json, to_json

from sqlstream.location import Location
from sqlstream.project.yaml.nodes import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence

TEXT, VALUE, LIST, MAPPING = range(4)
"""The kinds: a scalar that is its own text, any other one, and what holds others."""


def pack(node: YamlMapping) -> str:
    """Returns a file's mapping as JSON."""
    packed: list[object] = []
    _put(node, packed)
    return to_json(packed).decode()


def unpack(text: str, path: str) -> YamlMapping | None:
    """Returns the mapping of the file `path` that `pack` has written as `text`; None for any other text."""
    try:
        node = _take(iter(from_json(text)).__next__, path)
    except (RecursionError, StopIteration, TypeError, ValueError):
        return None
    return node if isinstance(node, YamlMapping) else None


def _put(node: YamlNode, packed: list[object]) -> None:
    at = node.location
    if isinstance(node, YamlScalar):
        is_text = node.value == node.text
        packed += (
            (TEXT, at.line, at.column, node.text) if is_text else (VALUE, at.line, at.column, node.text, node.value)
        )
    elif isinstance(node, YamlSequence):
        packed += (LIST, at.line, at.column, len(node.items))
        for item in node.items:
            _put(item, packed)
    else:
        packed += (MAPPING, at.line, at.column, len(node.entries))
        for key, place, value in node.entries:
            packed += (key, place.line, place.column)
            _put(value, packed)


def _take(take: Callable[[], Any], path: str) -> YamlNode:
    kind, location = take(), Location(path, take(), take())
    if kind == TEXT:
        text = take()
        return YamlScalar(text, text, location)
    if kind == VALUE:
        text = take()
        return YamlScalar(take(), text, location)
    if kind == LIST:
        return YamlSequence(tuple([_take(take, path) for _ in range(take())]), location)
    if kind == MAPPING:
        entries = [YamlEntry(take(), Location(path, take(), take()), _take(take, path)) for _ in range(take())]
        return YamlMapping(tuple(entries), location)
    raise ValueError(f"{kind} is not a kind of node")
