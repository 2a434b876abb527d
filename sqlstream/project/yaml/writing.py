"""Writes values into YAML files that are read as templates, and changes parts of such files.

What is written reads back as the same value (`parse_yaml`, then Jinja), and the rest of a file stays as it is: its line
ends, its byte order mark, its last line end, its comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from sqlstream.project.yaml.nodes import JINJA_MARKS

BOM = "\ufeff"

Edit = tuple[int, int, str]
"""The start and end of a part of a text, and its replacement."""

_ESCAPED = re.compile(r"[^ -~\xa0-\ud7ff]|['\\]")
"""Characters that are escaped in a string of Jinja."""

_NEEDS_ESCAPES = re.compile(r"[^\t -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010fffe]")
"""Characters that a YAML text cannot contain, and line ends, which would be folded."""


class _FlowDumper(yaml.SafeDumper):
    """Writes text on one line: in double quotes if it has characters that must be escaped."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        style = '"' if _NEEDS_ESCAPES.search(data) else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_FlowDumper.add_representer(str, _FlowDumper.represent_text)


def flow_text(value: object) -> str:
    """Returns a value as YAML on one line, also for a place within `[]` or `{}`.

    Read as YAML and then as a template, it is the same value.
    """
    # As an item of a list, which is how a value must be written within brackets.
    dumped: str = yaml.dump(
        [_escaped(value)],
        Dumper=_FlowDumper,
        default_flow_style=True,
        width=float("inf"),
        allow_unicode=True,
        sort_keys=False,
    )
    return dumped.strip()[1:-1]


_PLAIN = re.compile(r"[A-Za-z_](?:[\w .,()<>/`'-]|:(?=\S)|(?<=\S)#)*(?<![ :])")
"""Text that needs no quotes in block YAML."""

_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"})
"""Words that YAML 1.1 does not read as text."""


def scalar_text(text: str) -> str:
    """Returns a text as the value of a key of block YAML, with quotes only if it needs them."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else flow_text(text)


def _escaped(value: object) -> object:
    """Returns the value with each text that Jinja would read as a template as an expression whose value is the text.

    Keys of mappings are never templates.
    """
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, str) and any(mark in value for mark in JINJA_MARKS):
        return "{{ '" + _ESCAPED.sub(lambda found: _jinja_escape(found.group()), value) + "' }}"
    return value


def _jinja_escape(character: str) -> str:
    if character in "'\\":
        return "\\" + character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@dataclass(frozen=True)
class YamlFile:
    """The text of a YAML file as it is, without its byte order mark."""

    text: str
    has_bom: bool = False

    @property
    def newline(self) -> str:
        """The line end of the file: that of its first line."""
        found = re.search(r"\r\n|\n|\r", self.text)
        return found.group() if found else "\n"

    def with_edits(self, edits: Iterable[Edit]) -> YamlFile:
        """Returns the file with parts replaced, which do not overlap. Line ends in edits become those of the file."""
        text = self.text
        # From the end of the text, so that earlier offsets stay right.
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new.replace("\n", self.newline) + text[end:]
        return replace(self, text=text)

    def with_lines(self, lines: Sequence[str]) -> YamlFile:
        """Returns the file with `lines` added. Its last line has a line end if it had one before."""
        text, newline = self.text, self.newline
        ended = text.endswith(("\n", "\r")) or not text
        added = newline.join(lines) + (newline if ended else "")
        return replace(self, text=text + ("" if ended else newline) + added)

    def write(self, path: Path) -> None:
        """Writes the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(((BOM if self.has_bom else "") + self.text).encode())


def read_yaml_file(path: Path) -> YamlFile:
    """Returns the file at `path`. Raises: OSError, UnicodeDecodeError."""
    text = path.read_bytes().decode()
    return YamlFile(text.removeprefix(BOM), text.startswith(BOM))


def block_text(value: object, *, is_template: bool = False) -> str:
    """Returns a value as YAML with one key or item on each line. With `is_template`, it is the same value if the YAML
    is then read as a template.
    """
    dumped: str = yaml.dump(
        _escaped(value) if is_template else value,
        Dumper=_FlowDumper,
        default_flow_style=False,
        width=float("inf"),
        allow_unicode=True,
        sort_keys=False,
    )
    return dumped
