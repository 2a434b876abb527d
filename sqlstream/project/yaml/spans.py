"""Positions in a YAML text: the range of a value, and the location of a character in a scalar."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import yaml

from sqlstream.location import Location


class Spans:
    """The ranges of the values of a YAML text. Without any for a text that is not YAML."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._root: yaml.Node | None = yaml.compose(text, yaml.CSafeLoader)
        except yaml.YAMLError:
            self._root = None

    def of(self, path: Sequence[str | int]) -> tuple[int, int] | None:
        """Returns the offsets of the value at a path of keys and indexes, without trailing white space and comments;
        None if it does not exist. For an alias it is the referenced value.
        """
        node = self._root
        for part in path:
            node = _child(node, part)
        if node is None:
            return None
        begin, end = node.start_mark.index, _end(node)
        return begin, begin + len(self._text[begin:end].rstrip())


def _end(node: yaml.Node) -> int:
    """Returns the end of a value: that of its last part if it is written in lines, because comments can follow."""
    end: int = node.end_mark.index
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return end
    parts = [part[1] if isinstance(part, tuple) else part for part in node.value]
    starts = [node.start_mark.index - 1, *(part.start_mark.index for part in parts), end + 1]
    has_alias = any(one >= other for one, other in pairwise(starts))
    return end if has_alias else _end(parts[-1])


def _child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item: yaml.Node = node.value[part]
        return item
    return None


def locate_in_scalar(file_text: str, scalar: Location, text: str, offset: int) -> Location:
    """Returns the location of the character at `offset` of `text`, the text of the scalar at `scalar` in the file.

    It is exact for text on one line, with or without quotes, and for a literal block (`|`). For text that YAML or Jinja
    has changed, it is the location of the scalar.
    """
    lines = file_text.split("\n")
    written = lines[scalar.line - 1][scalar.column - 1 :] if scalar.line <= len(lines) else ""
    if written.startswith("|"):
        return _in_block(lines, scalar, text, offset)
    quote = 1 if written[:1] in ("'", '"') else 0
    if text and written[quote:].startswith(text):
        return Location(scalar.path, scalar.line, scalar.column + quote + offset)
    return scalar


def _in_block(lines: list[str], scalar: Location, text: str, offset: int) -> Location:
    """The location in a literal block, whose lines follow the line of the scalar with equal indentation."""
    before = text[:offset]
    number, column = before.count("\n"), offset - (before.rfind("\n") + 1)
    line = text.split("\n")[number]
    index = scalar.line + number
    if index >= len(lines) or not lines[index].endswith(line):
        return scalar
    return Location(scalar.path, index + 1, len(lines[index]) - len(line) + column + 1)
