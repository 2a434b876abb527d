"""Typical YAML mistakes are located on their own lines, with a fix that makes the file valid."""

from __future__ import annotations

import pytest

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.yaml import parse_yaml

SINKS = "sinks:\n  - name: out\n"

CASES: dict[str, tuple[str, str, str]] = {
    "an entry less indented": (SINKS + "    format: noop\n - name: two\n   format: noop\n", "4:2", "by 2 spaces"),
    "a tab": (SINKS + "\tformat: noop\n", "3:1", "tab"),
    "a key less indented": (SINKS + "   format: noop\n", "3:4", "by 4 spaces, like `name` in line 2"),
    "a key more indented": (SINKS + "      format: noop\n", "3:7", "by 4 spaces"),
    "a key at the level of the dash": (SINKS + "  format: noop\n", "3:3", "by 4 spaces"),
    "a mapping at the level of the dash": (SINKS + "    format: noop\n  options:\n    a: b\n", "4:3", "by 4 spaces"),
    "a second mistake below": (SINKS + "     format: noop\n  - name: b\n   format:noop\n", "3:6", "by 4 spaces"),
    "a key below a value": ("name: shop\n  version: 1\n", "2:3", "remove the spaces"),
    "an entry more indented": ("columns:\n  - name: a\n    type: b\n   - name: c\n    type: d\n", "4:4", "by 2 spaces"),
    "no space after a dash": ("sinks:\n  -name: out\n    format: noop\n", "2:3", "`- name: out`"),
    "the same, aligned": ("sinks:\n  -name: out\n   format: noop\n", "2:3", "`- name: out`"),
    "no dash": (SINKS + "    format: noop\n  name: two\n  format: noop\n", "4:3", "`- name: two`"),
    "no dash, aligned": (SINKS + "    format: noop\n    name: two\n    format: noop\n", "4:5", "add `- ` before it"),
    "no space after a colon": ("sinks:\n  - name:out\n    format: noop\n", "2:5", "`name: out`"),
    "the same in the last line": (SINKS + "    format:noop\n", "3:5", "`format: noop`"),
    "the same in the first line": ("version:2\nsinks: []\n", "1:1", "`version: 2`"),
    "no colon": ("version: 2\nsinks\n  - name: out\n", "2:1", "`sinks:`"),
    "no colon before a value": (SINKS + "    format noop\n    path: x\n", "3:5", "`format: noop`"),
    "a double quote": (SINKS.replace("out", '"out') + "    format: noop\n", "2:11", '`"out"`'),
    "a single quote": (SINKS.replace("out", "'out") + "    format: 'noop'\n", "2:11", "`'out'`"),
    "an apostrophe": (SINKS + "    description: 'it's a sink'\n", "3:18", '`"it\'s a sink"`'),
    "text behind quotes": (SINKS + '    description: "a" and more\n', "3:18", "`'\"a\" and more'`"),
    "Jinja in quotes and a path": (SINKS + "    path: \"{{ var('x') }}\"/y\n", "3:11", "`\"{{ var('x') }}/y\"`"),
    "Jinja without quotes": (SINKS + "    path: {{ model.name }}\n", "3:12", '"{{ model.name }}"'),
    "a statement of Jinja": (SINKS + "    path: {% if x %}a{% endif %}\n", "3:11", "`'{% if x %}a{% endif %}'`"),
    "a bracket": (SINKS + "    tags: [a, b\n    format: noop\n", "3:11", "add `]`"),
    "a brace": ("sinks:\n  - {name: out, format: noop\n  - {name: b, format: noop}\n", "2:5", "add `}`"),
    "a brace too many": ("sinks:\n  - {name: out, format: noop}}\n", "2:30", "remove the `}`"),
    "no comma": ("sinks:\n  - {name: out format: noop}\n", "2:16", "a comma before `format:`"),
    "a colon in a value": (SINKS + "    description: Note: a sink\n", "3:18", "`'Note: a sink'`"),
    "a value that begins with a sign": (SINKS + "    description: @me\n", "3:18", "`'@me'`"),
    "a star": ("selectors:\n  - name: all\n    definition: *\n", "3:17", "`'*'`"),
    "a value and a list": ("sinks: out\n  - name: out\n    format: noop\n", "1:8", "remove `out`"),
}


def finding(text: str) -> Finding:
    """Returns the only finding for a text."""
    with pytest.raises(FindingsError) as raised:
        parse_yaml(text, "f.yml")
    (found,) = raised.value.findings
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_typo_is_located_and_has_a_fix(name: str) -> None:
    """A typo is located on its own line, not where the parser gives up, and has a fix."""
    text, place, fix = CASES[name]

    found = finding(text)

    assert str(found.location) == f"f.yml:{place}"
    assert fix in found.fix


@pytest.mark.parametrize("text", ["a: [1, 2}\n", "a: ]\n", "- a\nb: 1\n- c\n", "? [\n"])
def test_an_unrepairable_mistake_is_a_finding(text: str) -> None:
    """If no repair helps, the finding has the parser's reason in plain words."""
    assert finding(text).code in ("yaml-syntax", "invalid-value")


def test_a_long_text_is_refused_quickly() -> None:
    """Refusing a broken file of megabytes takes no longer than reading it."""
    assert finding("a: 1\n" * 1 + "b: x\n" + "# more\n" * 10_000 + "  c: 1\n").code == "yaml-syntax"
