"""The only package that uses PyYAML: parses YAML text to nodes with locations."""

from __future__ import annotations

from sqlstream.project.yaml.nodes import (
    Located,
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    entries_at,
    follow,
    from_plain,
    locate,
    locate_in_scalar,
    merge_nodes,
    plain,
)
from sqlstream.project.yaml.parse import parse_yaml

__all__ = [
    "Located",
    "YamlEntry",
    "YamlMapping",
    "YamlNode",
    "YamlScalar",
    "YamlSequence",
    "entries_at",
    "follow",
    "from_plain",
    "locate",
    "locate_in_scalar",
    "merge_nodes",
    "parse_yaml",
    "plain",
]
