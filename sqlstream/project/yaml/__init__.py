"""The only home of PyYAML: YAML text to nodes with places."""

from __future__ import annotations

from sqlstream.project.yaml.nodes import (
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    follow,
    from_plain,
    locate,
    merge_nodes,
    plain,
)
from sqlstream.project.yaml.parse import parse_yaml

__all__ = [
    "YamlEntry",
    "YamlMapping",
    "YamlNode",
    "YamlScalar",
    "YamlSequence",
    "follow",
    "from_plain",
    "locate",
    "merge_nodes",
    "parse_yaml",
    "plain",
]
