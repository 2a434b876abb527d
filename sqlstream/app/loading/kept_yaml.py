"""YAML files parsed once: an unchanged file is taken from what earlier commands have left in the cache."""

from __future__ import annotations

from sqlstream.compiler.cache.digest import digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.project.yaml import YamlMapping, pack, parse_yaml, unpack

KIND = "yaml"
"""The kind of the entries."""


class KeptYaml:
    """Parses YAML, or recalls it; `paths` are the files that were parsed or recalled."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.paths: set[str] = set()

    def parse(self, text: str, path: str) -> YamlMapping:
        """Returns what `parse_yaml` does. Raises: FindingsError, and nothing is kept then."""
        self.paths.add(path)
        key = digest(text)
        kept = self._memory.recall_text(KIND, path, key)
        known = None if kept is None else unpack(kept, path)
        if known is not None:
            return known
        node = parse_yaml(text, path)
        self._memory.note_text(KIND, path, key, pack(node))
        return node
