"""YAML as frozen nodes with locations: the values of scalars, their positions in the text, and lookups."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import yaml

from sqlstream.location import Location

TAG_PREFIX = "tag:yaml.org,2002:"

LONGEST_NUMBER = 100
"""The most digits of a number. A longer one is text, because Python refuses to print integers of thousands of digits.
"""

NOT_MEANT = re.compile(r"[-+]?0[0-7_]+|.*:.*")
"""Numbers of YAML 1.1 that nobody means, so they are text: 01234 would be octal, 668, and 12:30 to the base 60, 750."""

JINJA_MARKS = ("{{", "{%", "{#")
"""What begins an expression, a statement and a comment of Jinja."""

BOOLEAN_WORDS = frozenset({"yes", "no", "on", "off"})
"""Words that YAML 1.1 reads as booleans, in any letter case."""


@dataclass(frozen=True)
class Located:
    """A value from YAML or config() (str, int, float, bool, None, list, dict), with its location."""

    value: object
    location: Location


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
            node = _span_child(node, part)
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
    # An alias has the marks of its anchor, which is somewhere above.
    has_alias = any(one >= other for one, other in pairwise(starts))
    return end if has_alias else _end(parts[-1])


def _span_child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
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


_RESOLVER: Any = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_CONSTRUCTORS: dict[str, Any] = {
    TAG_PREFIX + "null": _CONSTRUCTOR.construct_yaml_null,
    TAG_PREFIX + "bool": _CONSTRUCTOR.construct_yaml_bool,
    TAG_PREFIX + "int": _CONSTRUCTOR.construct_yaml_int,
    TAG_PREFIX + "float": _CONSTRUCTOR.construct_yaml_float,
}


_NUMBERS = (TAG_PREFIX + "int", TAG_PREFIX + "float")


def resolve_scalar(text: str, tag: str | None, *, plain_style: bool, location: Location) -> YamlScalar | None:
    """Returns the scalar, or None if its explicit tag is not supported or does not fit the text.

    `plain_style`: the text has no quotes and no tag. Dates and times stay text, because the schema decides on their
    type.
    """
    if plain_style:
        # No other type of YAML begins with this character.
        if text and text[0] not in yaml.resolver.Resolver.yaml_implicit_resolvers:
            return YamlScalar(text, text, location)
        tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
        is_text = tag in _NUMBERS and NOT_MEANT.fullmatch(text)
        found = None if is_text else _construct(text, tag, location)
        return found or YamlScalar(text, text, location)
    if tag is None or tag in ("!", TAG_PREFIX + "str"):
        return YamlScalar(text, text, location)
    return _construct(text, tag, location)


def _construct(text: str, tag: str, location: Location) -> YamlScalar | None:
    construct = _CONSTRUCTORS.get(tag)
    if construct is None or len(text) > LONGEST_NUMBER:
        return None
    try:
        return YamlScalar(construct(yaml.ScalarNode(tag, text)), text, location)
    except (ValueError, LookupError, OverflowError):
        return None
