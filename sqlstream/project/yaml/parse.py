"""Parses the text of a YAML file to nodes with locations, with limits on nesting and size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import yaml

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, location_at
from sqlstream.project.yaml.nodes import (
    TAG_PREFIX,
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    plain,
    resolve_scalar,
)
from sqlstream.project.yaml.problems import (
    UNCLOSED,
    contains_itself,
    duplicate_key,
    key_not_text,
    not_a_mapping,
    not_mergeable,
    several_documents,
    syntax_problem,
    too_large,
    too_nested,
    undefined_alias,
    unsupported_tag,
)

DEEPEST_NESTING = 100
"""The most levels of mappings and lists, so that later stages can recurse over nodes."""

MOST_NODES = 100_000
"""The most values of one file with its aliases expanded: nine levels of ten aliases each are a billion."""


def parse_yaml(text: str, path: str) -> YamlMapping:
    """Returns the single document of a YAML text as a mapping; an empty text is an empty mapping.

    `path` is the file's name in locations. Raises: FindingsError with all duplicate keys, or with the first problem
    that makes the rest unreadable.
    """
    builder = _Builder(path, text)
    _add_events(text, path, builder)
    if builder.findings:
        raise FindingsError(builder.findings)
    root = builder.root
    if root is None or (isinstance(root, YamlScalar) and root.value is None):
        return YamlMapping((), Location(path))
    if not isinstance(root, YamlMapping):
        raise FindingsError([not_a_mapping(plain(root), root.location)])
    return root


def _add_events(text: str, path: str, builder: _Builder) -> None:
    try:
        for event in _events(text):
            builder.add_event(event)
    except yaml.MarkedYAMLError as error:
        raise FindingsError([syntax_problem(error, text, _error_location(error, path, text))]) from error
    except yaml.reader.ReaderError as error:
        offset = next((at for at, letter in enumerate(text) if _refused(letter)), 0)
        raise FindingsError([syntax_problem(error, text, location_at(path, text, offset))]) from error


def _events(text: str) -> Iterator[yaml.Event]:
    """Yields the events of a text, in half the time of `yaml.parse`."""
    parser = yaml.CSafeLoader(text)
    try:
        while (event := parser.get_event()) is not None:
            yield event
    finally:
        parser.dispose()


def _error_location(error: yaml.MarkedYAMLError, path: str, text: str) -> Location:
    """Returns the location of the problem. For a quote or bracket without an end it is the opening one."""
    unclosed = UNCLOSED.search(error.problem or "") is not None
    mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
    return Marks(path, text).location(mark)


def _refused(letter: str) -> bool:
    """Whether YAML refuses the character, as in `yaml.reader.Reader.NON_PRINTABLE`."""
    return yaml.reader.Reader.NON_PRINTABLE.match(letter) is not None


class _Built(NamedTuple):
    """A finished node: `size` counts its values with aliases expanded, `height` its levels."""

    node: YamlNode
    size: int
    height: int


@dataclass
class _Open:
    """An unfinished mapping or list; `size` and `height` are as in `_Built`. `lacks_dash`: a second entry of a
    list seems to begin in it, so its other keys are repeated too.
    """

    location: Location
    anchor: str | None
    is_mapping: bool
    size: int = 1
    height: int = 1
    items: list[YamlNode] = field(default_factory=list)
    entries: dict[str, YamlEntry] = field(default_factory=dict)
    merged: dict[str, YamlEntry] = field(default_factory=dict)
    merge_location: Location | None = None
    key: tuple[str, Location] | None = None
    lacks_dash: bool = False

    @property
    def expects_key(self) -> bool:
        return self.is_mapping and self.key is None

    def close(self) -> _Built:
        if not self.is_mapping:
            return _Built(YamlSequence(tuple(self.items), self.location), self.size, self.height)
        entries = {**self.merged, **self.entries}
        return _Built(YamlMapping(tuple(entries.values()), self.location), self.size, self.height)


class _Builder:
    """Builds nodes from events with an explicit stack, so that no nesting can exhaust Python's stack."""

    def __init__(self, path: str, text: str) -> None:
        self.root: YamlNode | None = None
        self.findings: list[Finding] = []
        self._text = text
        self._marks = Marks(path, text)
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Built] = {}
        self._documents = 0

    def add_event(self, event: yaml.Event) -> None:
        """Adds one event. Raises: FindingsError if the rest cannot be read."""
        if isinstance(event, yaml.CollectionEndEvent):
            done = self._stack.pop()
            self._add(done.close(), done.anchor, done.location)
            return
        location = self._marks.location(event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            self._add_scalar(event, location)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event, location)
        elif isinstance(event, yaml.AliasEvent):
            self._add_alias(str(event.anchor), location)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise FindingsError([several_documents(location)])

    def _add_scalar(self, event: yaml.ScalarEvent, location: Location) -> None:
        is_plain = event.implicit[0]
        if is_plain and event.anchor is None and self._stack and self._stack[-1].expects_key:
            self._set_plain_key(event.value, location)
            return
        scalar = resolve_scalar(event.value, event.tag, plain_style=is_plain, location=location)
        if scalar is None:
            raise FindingsError([unsupported_tag(event.tag, location)])
        if event.anchor is not None or not self._stack:
            self._add(_Built(scalar, 1, 0), event.anchor, location)
        else:  # the most frequent event
            self._grow(self._stack[-1], 1, location)
            self._place(self._stack[-1], scalar, location)

    def _add_alias(self, anchor: str, location: Location) -> None:
        if any(open_.anchor == anchor for open_ in self._stack):
            raise FindingsError([contains_itself(anchor, location)])
        if anchor not in self._anchors:
            raise FindingsError([undefined_alias(anchor, location)])
        self._add(self._anchors[anchor], None, location)

    def _open(self, event: yaml.CollectionStartEvent, location: Location) -> None:
        if self._stack and self._stack[-1].expects_key:
            raise FindingsError([key_not_text(self._line(location), location)])
        if len(self._stack) >= DEEPEST_NESTING:
            raise FindingsError([too_nested(DEEPEST_NESTING, location)])
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", TAG_PREFIX + ("map" if is_mapping else "seq")):
            raise FindingsError([unsupported_tag(event.tag, location)])
        self._stack.append(_Open(location, event.anchor, is_mapping))

    def _add(self, built: _Built, anchor: str | None, location: Location) -> None:
        if anchor is not None:
            self._anchors[anchor] = built
        if not self._stack:
            self.root = built.node
            return
        top = self._stack[-1]
        top.height = max(top.height, built.height + 1)
        # An alias can add many levels at a place that is already deep.
        if len(self._stack) + built.height > DEEPEST_NESTING:
            raise FindingsError([too_nested(DEEPEST_NESTING, location)])
        self._grow(top, built.size, location)
        self._place(top, built.node, location)

    def _grow(self, top: _Open, size: int, location: Location) -> None:
        top.size += size
        if top.size > MOST_NODES:
            raise FindingsError([too_large(MOST_NODES, location)])

    def _place(self, top: _Open, node: YamlNode, location: Location) -> None:
        if not top.is_mapping:
            top.items.append(node)
        elif top.key is None:
            self._set_key(top, node, location)
        else:
            key, key_location = top.key
            top.key = None
            if key is _MERGE:
                top.merged = _merged(node, key_location)
            else:
                top.entries.setdefault(key, YamlEntry(key, key_location, node))

    def _set_key(self, top: _Open, node: YamlNode, location: Location) -> None:
        if not isinstance(node, YamlScalar):
            raise FindingsError([key_not_text(self._line(location), location)])
        self._set_key_text(top, node.text, location)

    def _set_key_text(self, top: _Open, key: str, location: Location) -> None:
        first = top.entries.get(key)
        if first is not None and not top.lacks_dash:
            begins_entry = self._in_list(top) and key == next(iter(top.entries))
            top.lacks_dash = begins_entry and location.line > first.key_location.line
            self.findings.append(duplicate_key(key, first.key_location, location, begins_entry=top.lacks_dash))
        top.key = (key, location)

    def _in_list(self, top: _Open) -> bool:
        return len(self._stack) > 1 and self._stack[-1] is top and not self._stack[-2].is_mapping

    def _set_plain_key(self, key: str, location: Location) -> None:
        top = self._stack[-1]
        if key != "<<":
            self._set_key_text(top, key, location)
            return
        if top.merge_location is not None:
            self.findings.append(duplicate_key("<<", top.merge_location, location))
        top.merge_location = location
        top.key = (_MERGE, location)

    def _line(self, location: Location) -> str:
        """The rest of the line at `location`."""
        lines = self._text.split("\n", location.line)
        return lines[location.line - 1][location.column - 1 :] if len(lines) >= location.line else ""


_MERGE = "\0<<"
"""The merge key inside the builder: YAML text cannot contain the character NUL, so no key of a file equals it."""


def _merged(node: YamlNode, location: Location) -> dict[str, YamlEntry]:
    """Returns the entries that `<<` adds. The first of several equal keys wins (https://yaml.org/type/merge.html)."""
    mappings = node.items if isinstance(node, YamlSequence) else (node,)
    entries: dict[str, YamlEntry] = {}
    for mapping in mappings:
        if not isinstance(mapping, YamlMapping):
            raise FindingsError([not_mergeable(location)])
        for entry in mapping.entries:
            entries.setdefault(entry.key, entry)
    return entries


_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_RARE = re.compile("[\x85\u2028\u2029]")
"""Characters that end a line for libyaml, but not for an editor."""


class LibyamlMark(Protocol):
    """A position of libyaml. Both numbers count from 0."""

    @property
    def line(self) -> int:
        """The line."""

    @property
    def column(self) -> int:
        """The column."""


class Marks:
    """Finds the locations of libyaml's marks in one text."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        self._end = location_at(path, text, len(text))
        is_plain = _RARE.search(text) is None
        self._starts = () if is_plain else (0, *(found.end() for found in _BREAK.finditer(text)))

    def location(self, mark: LibyamlMark | None) -> Location:
        """Returns the location of a mark, or the file's beginning without one.

        libyaml ends each text with a line end, and reports missing text there on the next line.
        """
        if mark is None:
            return Location(self._path)
        if not self._starts:
            is_beyond = mark.line >= self._end.line
            return self._end if is_beyond else Location(self._path, mark.line + 1, mark.column + 1)
        start = self._starts[min(mark.line, len(self._starts) - 1)]
        return location_at(self._path, self._text, min(start + mark.column, len(self._text)))
