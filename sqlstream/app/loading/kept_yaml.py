"""YAML files parsed once: an unchanged file is taken from what earlier commands have left in the cache."""

from __future__ import annotations

from collections.abc import Collection

from sqlstream.compiler.cache.digest import digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.project.yaml import YamlMapping, pack, parse_yaml, unpack

KIND = "yaml"
"""The kind of the entries."""


class KeptYaml:
    """Parses YAML, or remembers it; `paths` are the files that were asked for. Those of `ahead` are being parsed by
    another process, whose entries `memory` awaits.
    """

    def __init__(self, memory: Memory, ahead: Collection[str] = ()) -> None:
        self._memory = memory
        self._ahead = ahead
        self.paths: set[str] = set()

    def parse(self, text: str, path: str) -> YamlMapping:
        """Returns what `parse_yaml` does. Raises: FindingsError, and nothing is kept then."""
        self.paths.add(path)
        key = digest(text)
        if path in self._ahead:
            self._memory.settle()
        kept = self._memory.recall_text(KIND, path, key)
        known = None if kept is None else unpack(kept, path)
        if known is not None:
            return known
        node = parse_yaml(text, path)
        self._memory.note_text(KIND, path, key, pack(node))
        return node
