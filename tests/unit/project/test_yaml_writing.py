"""What sqlstream writes into YAML files reads back as the same values, and the rest of a file stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.errors import Finding
from sqlstream.project.configuration.templates import UNIT_TEST_RULES, render_mapping
from sqlstream.project.yaml import parse_yaml, plain
from sqlstream.project.yaml.writing import YamlFile, flow_text, read_yaml_file

SPECIAL = "{}%#'\"\\-_ \n\r\t:,[]&*!|>?@`~<=\x00\x07\x7f\x85\xa0\u2028\u2029\ufeff\ufffd\U0001f600"
TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from(SPECIAL)))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
RENDER = make_yaml_renderer({})({"x": "other"}, "dev")


def read(text: str) -> object:
    """Returns what a unit test reads of YAML: parsed, and rendered as a template."""
    findings: list[Finding] = []
    rendered = plain(render_mapping(parse_yaml(text, "tests/models/t.yml"), RENDER, UNIT_TEST_RULES, findings))
    assert findings == []
    return rendered


@given(st.dictionaries(TEXTS, VALUES, max_size=3))
@example({"a": "sum of {{ 1 + 1 }}"})
@example({"a": "{{ var('x') }}", "{{ b }}": "{% raw %}{{ x }}{% endraw %}"})
@example({"a": "  {{  ", "b": "{#", "c": "'}}'\\", "d": "{{\n}}"})
@example({"<<": {"=": "~"}, "a": "2024-01-01", "b": "01234", "c": "no", "d": "1_000", "e": "12:30", "f": "null"})
@example({"k" * 2000: "v" * 2000})
def test_a_value_is_read_as_it_was_written(row: dict[str, object]) -> None:
    """Any text is the same text after YAML and Jinja, in values and keys, at any depth, on one line."""
    text = flow_text(row)

    assert "\n" not in text
    assert read(f"rows:\n  - {text}\nother: {{a: [{text}], b: 1}}\n") == {
        "rows": [row],
        "other": {"a": [row], "b": 1},
    }


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [True, False])
def test_a_file_keeps_its_bytes(tmp_path: Path, newline: str, bom: bytes, *, end: bool) -> None:
    """Line ends, the byte order mark and the missing end of the last line stay, in changed and in added lines."""
    path = tmp_path / "t.yml"
    path.write_bytes(bom + newline.join(["a: 1 # one", "b: 2"]).encode() + (newline.encode() if end else b""))

    file = read_yaml_file(path)
    file.with_edits([(3, 4, "5")]).with_lines(["c: 3", "d: 4"]).write(path)

    lines = newline.join(["a: 5 # one", "b: 2", "c: 3", "d: 4"])
    assert path.read_bytes() == bom + lines.encode() + (newline.encode() if end else b"")


def test_a_new_file_has_unix_line_ends() -> None:
    """A text without lines ends them with a line feed."""
    assert YamlFile("").with_lines(["a: 1"]).text == "a: 1\n"
