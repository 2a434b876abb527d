"""Parsed YAML is the same after packing and unpacking."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.errors import FindingsError
from sqlstream.project.yaml import pack, parse_yaml, unpack

REPOSITORY = Path(__file__).parents[3]
FILES = sorted(path for pattern in ("*.yml", "models/**/*.yml", "tests/**/*.yml") for path in REPOSITORY.glob(pattern))

SCALARS = """\
values: [1, 1.0, 0x1F, -.5, 1e400, .inf, -.inf, true, 'true', no, "no", null, ~, '', 'a b', 2024-01-01, 12:02, 01234]
largest: 123456789012345678901234567890
nothing:
text: |
  two
  lines
names: &names {é: "\\u2028", "a b": {deeper: [[], {}]}}
again: *names
merged: {<<: *names, own: 1}
"""


def is_same_when_packed(text: str) -> bool:
    """Returns whether the nodes are equal after packing, with their locations and value types."""
    node = parse_yaml(text, "a.yml")
    again = unpack(pack(node), "a.yml")
    return again == node and repr(again) == repr(node)


@pytest.mark.parametrize("text", [SCALARS, "", "{}", "a: .nan"], ids=["scalars", "empty", "braces", "no number"])
def test_every_form_is_kept(text: str) -> None:
    """Packing keeps all forms of values with their texts and locations."""
    node = parse_yaml(text, "a.yml")
    assert repr(unpack(pack(node), "a.yml")) == repr(node)


def test_the_files_of_this_repository_are_kept() -> None:
    """Packing keeps all valid YAML files of this repository."""
    kept = 0
    for path in FILES:
        try:
            assert is_same_when_packed(path.read_text(encoding="utf-8")), path
            kept += 1
        except (FindingsError, UnicodeDecodeError):
            continue
    assert kept > 50


@pytest.mark.parametrize("depth", [1, 50, 95])
def test_deep_nesting_is_kept(depth: int) -> None:
    """Packing keeps nodes at the deepest nesting that YAML allows."""
    keys = "".join("  " * level + f"k{level}:\n" for level in range(depth))
    assert is_same_when_packed(keys + "  " * depth + "x: 1\n")
    assert is_same_when_packed(f"a: {'[' * depth}{']' * depth}")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "{", "7", "[0,1,1,'a']", "[2,1,1,0]", "[3,1,1,1]", '[3,1,1,"x"]', "[3,1,1,1e9]", "[9,1,1]"]
)
def test_other_text_is_ignored(text: str) -> None:
    """Unpacking any other text gives nothing and raises no error."""
    assert unpack(text, "a.yml") is None
