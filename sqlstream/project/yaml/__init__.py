"""The only package that uses PyYAML: parses YAML text to nodes with locations."""

from __future__ import annotations

from sqlstream.project.yaml.nodes import (
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    entries_at,
    follow,
    from_plain,
    locate,
    merge_nodes,
    plain,
)
from sqlstream.project.yaml.packed import pack, unpack
from sqlstream.project.yaml.parse import ParseYaml, parse_yaml
from sqlstream.project.yaml.spans import locate_in_scalar

__all__ = [
    "ParseYaml",
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
    "pack",
    "parse_yaml",
    "plain",
    "unpack",
]
