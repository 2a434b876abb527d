"""Each character of rendered SQL maps back to the place where it was written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstream.compiler.render.sandbox.environment import TemplateSource
from sqlstream.compiler.render.source_map import SourceMapper
from sqlstream.location import Place, SourceMap
from sqlstream.project.values import MacroFile
from tests.support.rendering import model, options, render, renderer

PATH = "models/orders.sql"


def places_of(text: str, wanted: str, *macros: str) -> list[str]:
    """Returns the place of each occurrence of `wanted` in the SQL as `line:column`, after the places of its calls."""
    made = renderer(*macros)
    rendered = made.render(model(text))
    source_map = made.source_map(rendered)
    found, at = [], rendered.sql.find(wanted)
    while at >= 0:
        found.append(short_place(source_map.locate(at)))
        at = rendered.sql.find(wanted, at + 1)
    return found


def short_place(place: Place) -> str:
    """Returns a place in short form, the outermost call first; `m` marks the macro file."""
    steps = [*place.calls, place.location]
    return " > ".join(f"{'m' if step.path != PATH else ''}{step.line}:{step.column}" for step in steps)


@pytest.mark.parametrize(
    ("text", "wanted", "places"),
    [
        ("select a\n  , amout from t", "amout", ["2:5"]),
        ("{{ config(sink='a') }}\nselect amout", "amout", ["2:8"]),
        ("{{ config(sink='a') -}}\n\n   select amout", "amout", ["3:11"]),
        ("select {{ 'x' }}, amout", "amout", ["1:19"]),
        ("select {{ 1 + 1 }}, {{ var('name') }}", "shop", ["1:24"]),
        ("from {{ ref('amout') }} x", "amout", ["1:9"]),
        ("{% for i in [1, 2] %}\n a{{ i }} amout\n{% endfor %}", "amout", ["2:11", "2:11"]),
        ("{% for i in [1, 2] %}\n {{ i }} amout{% endfor %}", "1", ["2:5"]),
        ("{% set x %}\n  amout\n{% endset %}\nselect {{ x }}", "amout", ["4:11 > 2:3"]),
        ("{% set x %}\n  amout\n{% endset %}\nselect {{ x|trim }}.", "amout", ["4:11 > 2:3"]),
        ("{% set x %} amout {% endset %}{{ x|trim }},{{ x|upper|lower }}", "amout", ["1:34 > 1:13", "1:47 > 1:13"]),
        ("{{ 'xamoutx'|trim('x') }}", "amout", ["1:4"]),
        ("{{ 7|trim }} amout", "amout", ["1:14"]),
        ("{% set x = ['amout'] %}\n{{ x|join(', ') }}", "amout", ["2:4"]),
        ("{% if true %}\n amout{% else %} amout{% endif %}", "amout", ["2:2"]),
        ("{% raw %} amout{% endraw %}", "amout", ["1:11"]),
        ("{# {{ amout }}\n #}\n  amout", "amout", ["3:3"]),
        ("a\r\n amout\r\n", "amout", ["2:2"]),
        ("{% macro m(x) %} amout {{ x }}{% endmacro %}\n{{ m('other') }}", "amout", ["2:4 > 1:18"]),
        ("{% macro m(x) %} amout {{ x }}{% endmacro %}\n{{ m('other') }}", "other", ["2:4 > 1:27"]),
        ("{% filter upper %}\n amout{% endfilter %}", "AMOUT", ["1:4 > 2:2"]),
        (
            "{% set l = [] %}{% set x %}amout{% endset %}{% do l.append(x) %}\n{{ l|join('-') }}",
            "amout",
            ["2:4 > 1:28"],
        ),
        ("{{ 'a' }}{{ '' }} amout {% if '' %}{% endif %}", "amout", ["1:19"]),
    ],
)
def test_text_maps_to_its_place(text: str, wanted: str, places: list[str]) -> None:
    """Text maps to its own line and column, and the output of an expression maps to the expression."""
    assert places_of(text, wanted) == places


@pytest.mark.parametrize(
    ("text", "macro", "wanted", "places"),
    [
        ("a\n {{ m() }}", "{% macro m() %}\n  amout\n{% endmacro %}", "amout", ["2:5 > m2:3"]),
        ("{{ m('amout') }}", "{% macro m(x) %}\n{{ x }}{% endmacro %}", "amout", ["1:4 > m2:4"]),
        (
            "{{ a() }}",
            "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}\n amout{% endmacro %}",
            "amout",
            ["1:4 > m1:19 > m2:2"],
        ),
        (
            "{% call m() %} amout{% endcall %}",
            "{% macro m() %}\n{{ caller() }}{% endmacro %}",
            "amout",
            ["1:4 > m2:4 > 1:16"],
        ),
        ("{{ m() }}", "{% macro m() %}{{ return('amout') }}{% endmacro %}", "amout", ["1:4"]),
        ("{{ m()|title }}", "{% macro m() %}amout{% endmacro %}", "Amout", ["1:4"]),
        ("{{ m()|length }} amout", "{% macro m() %}\n ab{% endmacro %}", "amout", ["1:18"]),
        ("{% if m() == 'yes' %}amout{% endif %}", "{% macro m() %}yes{% endmacro %}", "amout", ["1:22"]),
        ("{{ ref(m()) }} amout", "{% macro m() %}yes{% endmacro %}", "amout", ["1:16"]),
        ("{{ {'yes': 'amout'}[m()] }}", "{% macro m() %}yes{% endmacro %}", "amout", ["1:4"]),
        ("{{ fromjson(m()).a }} amout", '{% macro m() %}{"a": 1}{% endmacro %}', "amout", ["1:23"]),
        ("{{ tojson(m()) }} amout", "{% macro m() %}yes{% endmacro %}", "amout", ["1:19"]),
    ],
)
def test_text_from_a_macro_maps_to_the_macro(text: str, macro: str, wanted: str, places: list[str]) -> None:
    """Text from a macro maps to the macro's line and lists the calls, the model's first."""
    assert places_of(text, wanted, macro) == places


def test_text_that_marks_would_change_maps_line_by_line() -> None:
    """If the text cannot be marked, each line maps to the same line of the template or the nearest line before it."""
    text = "{% set x %}ba{% endset %}\nselect a,\n{{ x|reverse }}{% for c in x %}{{ c }}{% endfor %}\n  amout\nfrom t"
    assert places_of(text, "amout") == ["4:3"]


def test_a_text_that_contains_marks_maps_line_by_line() -> None:
    """A model that contains the private-use characters of marks keeps them and maps line by line."""
    assert places_of("'\U0010f802\U0010f800'\n amout", "amout") == ["2:2"]


def test_every_offset_has_a_place() -> None:
    """The end of a text has a place, also in an empty model."""
    made = renderer()
    for text in ("", "{{ config(a=1) }}", "x"):
        rendered = made.render(model(text))
        assert made.source_map(rendered).locate(len(rendered.sql)).location.path == PATH


WORDS = st.text(alphabet="abcXYZ \n,(", min_size=0, max_size=8)
DASH = st.sampled_from(["", "", "-"])


@st.composite
def tags(draw: st.DrawFn, statement: str) -> str:
    """Draws a statement with or without whitespace control on either side."""
    return "{%" + draw(DASH) + f" {statement} " + draw(DASH) + "%}"


@st.composite
def expressions(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """Draws an expression that outputs digits or the value of a name."""
    inner = draw(st.sampled_from(["7", "1 + 2", "12 ~ 3", "'4'|trim", *names]))
    return "{{" + draw(DASH) + f" {inner} " + draw(DASH) + "}}"


@st.composite
def bodies(draw: st.DrawFn, depth: int, names: tuple[str, ...]) -> str:
    """Draws text, expressions and blocks; all digits of the output come from expressions."""
    parts = []
    for index in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "expression", "for", "if", "set", "macro", "comment", "filter"]))
        if kind == "text" or (depth == 0 and kind != "expression"):
            parts.append(draw(WORDS))
        elif kind == "expression":
            parts.append(draw(expressions(names)))
        else:
            parts.append(draw(blocks(kind, f"v{depth}{index}", depth - 1, names)))
    return "".join(parts)


@st.composite
def blocks(draw: st.DrawFn, kind: str, name: str, depth: int, names: tuple[str, ...]) -> str:
    """Draws one block of a kind, followed by a use of the name that it defines."""
    body = draw(bodies(depth, names))
    if kind == "for":
        return draw(tags("for i in [1, 2]")) + body + draw(tags("endfor"))
    if kind == "if":
        return draw(tags("if true")) + body + draw(tags("else")) + draw(WORDS) + draw(tags("endif"))
    if kind == "set":
        use = draw(expressions((name, f"{name}|trim", f"{name} ~ {name}")))
        return draw(tags(f"set {name}")) + body + draw(tags("endset")) + use
    if kind == "macro":
        return draw(tags(f"macro {name}()")) + body + draw(tags("endmacro")) + draw(expressions((f"{name}()",)))
    if kind == "filter":
        return draw(tags("filter trim")) + body + draw(tags("endfilter"))
    return "{#" + draw(DASH) + " gone " + draw(DASH) + "#}"


def assert_exact(sql: str, source_map: SourceMap, sources: dict[str, TemplateSource]) -> None:
    """Checks that each letter maps to the same letter, and each digit to an expression."""
    for offset, letter in enumerate(sql):
        location = source_map.locate(offset).location
        source = sources[location.path]
        lines = source.text.split("\n")
        rest = lines[location.line - 1][location.column - 1 :] + "\n"
        assert rest[0] == letter or (letter.isdigit() and rest[0] in "714'v")


@settings(max_examples=150)
@given(text=bodies(3, ("macro_of_the_project()",)), macro=bodies(2, ()))
def test_generated_templates(text: str, macro: str) -> None:
    """Marks do not change the text, and every character of template text maps to itself."""
    macro_file = MacroFile("macros/0.sql", "{% macro macro_of_the_project() %}" + macro + "{% endmacro %}")
    rendered = render(text, macro_file.text)
    source_map = SourceMapper([macro_file], options()).exact_map(rendered)
    assert source_map is not None
    sources = {PATH: TemplateSource(PATH, text), macro_file.path: TemplateSource(macro_file.path, macro_file.text)}
    assert_exact(rendered.sql, source_map, sources)
