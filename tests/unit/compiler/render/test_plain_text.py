"""Text without Jinja is rendered unchanged, and each character keeps its place."""

from __future__ import annotations

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sqlstream.compiler.render.source_map import SourceMapper
from sqlstream.location import location_at
from tests.support.rendering import model, options, render, renderer

PIECES = (
    "select",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "'",
    '"',
    "`",
    "--",
    "/*",
    "*/",
    "{",
    "}",
    "%",
    "#",
    "-",
    "a",
    "1",
    "é",
    "😀",
    "\\",
    "\u2028",
    "\x85",
)
TEXT = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)
OPENINGS = ("{{", "{%", "{#")


def without_jinja(text: str) -> str:
    """Returns `text`, or skips the example if it contains the start of a Jinja tag."""
    assume(not any(opening in text for opening in OPENINGS))
    return text


@settings(max_examples=200)
@example("a\n")
@example("\n\n")
@example("a }} %} #} { { b")
@given(TEXT)
def test_text_without_jinja_is_not_changed(text: str) -> None:
    """Text without Jinja is unchanged, except that all line ends become newlines."""
    without_jinja(text)
    assert render(text).sql == text.replace("\r\n", "\n").replace("\r", "\n")


@settings(max_examples=100)
@given(TEXT)
def test_text_without_jinja_maps_to_itself(text: str) -> None:
    """Each character maps to its own line and column in the file, with any kind of line end."""
    without_jinja(text)
    rendered = render(text)
    source_map = renderer().source_map(rendered)
    for offset in range(len(rendered.sql)):
        expected = location_at(rendered.file.path, rendered.sql, offset)
        assert source_map.locate(offset).location == expected


@settings(max_examples=100)
@given(
    TEXT,
    TEXT,
    st.sampled_from(["{{ '' }}", "{# a #}", "{% if true %}{% endif %}", "{% set a = 1 %}", "{{ config(a=1) }}"]),
)
def test_text_around_jinja_is_not_changed(before: str, after: str, tag: str) -> None:
    """A tag without output leaves the text around it unchanged."""
    without_jinja(before + " " + after)
    assume(not before.endswith("{"))
    text = f"{before}{tag}{after}"
    sql = render(text).sql
    kept = after.replace("\r\n", "\n").replace("\r", "\n")
    assert sql == before.replace("\r\n", "\n").replace("\r", "\n") + kept
    source_map = SourceMapper([], options()).exact_map(renderer().render(model(text)))
    if source_map is not None and sql:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for offset, letter in enumerate(sql):
            at = source_map.locate(offset).location
            assert (lines[at.line - 1] + "\n")[at.column - 1] == letter
