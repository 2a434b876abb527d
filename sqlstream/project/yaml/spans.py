"""The range of a value in a YAML text, from its first to its last character, for replacements."""

from __future__ import annotations

from collections.abc import Sequence

import yaml


def span_of(text: str, path: Sequence[str | int]) -> tuple[int, int] | None:
    """Returns the offsets of the value at a path of keys and indexes, None if it does not exist. For an alias it is the
    referenced value.
    """
    try:
        node: yaml.Node | None = yaml.compose(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    for part in path:
        node = _child(node, part)
    if node is None:
        return None
    return node.start_mark.index, node.end_mark.index


def _child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item: yaml.Node = node.value[part]
        return item
    return None


def flow_text(value: object) -> str:
    """Returns a value as YAML on one line that reads back as the same value."""
    dumped = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False)
    return dumped.strip().removesuffix("\n...").removesuffix("...").strip()
