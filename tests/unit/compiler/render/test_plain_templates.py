"""Templates rendered without Jinja give the same text, references, places and side effects as with Jinja."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstream.compiler.render import model as rendering_of_models
from sqlstream.compiler.render.model import MOST_CALLS, read_plain
from sqlstream.compiler.render.sandbox.environment import TemplateSource
from sqlstream.errors import FindingsError
from tests.support.rendering import model, renderer

MACROS = (
    "{% macro double(x, by=2) %}{{ x }} * {{ by }}{% endmacro %}\n"
    "{% macro chatty() %}{{ log('hello', true) }}{{ exceptions.warn('careful') }}{{ ref('inner') }}{% endmacro %}\n"
    "{% macro failing() %}{{ log('before', true) }}{{ nothing.at_all }}{% endmacro %}"
)
ROOT = Path(__file__).parents[4]

PLAIN = (
    "select 1",
    "",
    "select * from {{ ref('orders') }}",
    'from {{ source("shop",   "orders") }} }} %} #} { a: 1 }',
    "{{ref('a')}}{{ ref( 'b' , ) }}\n\n{{\tref('c')\n}}",
    "{{ config(sink='lake', tags=['a', 'b'], meta={'owner': 'ana', 'levels': [1, 2, {'x': none}]}, enabled=True) }}x",
    "{{ config({'sink': 'lake', 'trigger': '10 seconds'}) }}",
    "{{ config(\n    sink='lake',\n    tags=[\n        'tags',\n    ],\n) }}\nselect 1",
    "{{ config(sink='a') }}{{ config(sink='b', sinks='sink') }}",
    "select {{ var('days') }}, {{ var('other', 3) }}, {{ var('columns') }}, {{ env_var('HOME') }}",
    "select {{ double('a + b') }} and {{ double('x', by=10) }} and {{ chatty() }}",
    "{{ ref('café') }}",
    "{{ ref('examples', 'orders') }} -- {{ ref(\"it's\") }}",
    "{{ tojson([1, 'a', true, none]) }}{{ tojson({'a': 1}) }}",
    "line 1\r\nline 2 {{ ref('a') }}\r{{ ref('b') }}",
)
"""Templates that are rendered without Jinja, except `café`, which is not ASCII and is left to Jinja."""

LEFT_TO_JINJA = (
    "{% if true %}1{% endif %}",
    "{# a comment #}",
    "{{- ref('a') -}}",
    "{{ ref('a') | upper }}",
    "{{ ref('a' ~ 'b') }}",
    "{{ ref('a' 'b') }}",
    "{{ ref(r'a') }}",
    "{{ ref('''a''') }}",
    "{{ ref('a\\n') }}",
    "{{ ref(*['a']) }}",
    "{{ config(**{'sink': 'a'}) }}",
    "{{ double(1.5) }}",
    "{{ double(-1) }}",
    "{{ double(0x1F) }}",
    "{{ double(1_000) }}",
    "{{ double((1, 2)) }}",
    "{{ double(days) }}",
    "{{ double(b'a') }}",
    "{{ double(f'{x}') }}",
    "{{ double(lambda: 1) }}",
    "{{ double(x := 1) }}",
    "{{ double(1)(2) }}",
    "{{ double(1) + double(2) }}",
    "{{ config.get('sink') }}",
    "{{ target }}",
    "{{ this }}",
    "{{ double('a' # no comment\n) }}",
)

WRONG = (
    "{{ ref() }}",
    "{{ ref('a', 'b', 'c') }}",
    "{{ source('a') }}",
    "{{ var('nothing') }}",
    "{{ config(1) }}",
    "{{ nothing('a') }}",
    "{{ double }}",
    "{{ ref('a'",
    "{{ ref('a' }}",
    "{{ failing() }}",
    "{{ ref(a='b') }}",
    "{{ double() }}{{ var('nothing') }}",
    "{{ tojson(" + "[" * 150 + "]" * 150 + ") }}",
    "{{ return('a') }}",
    "{{ env_var('SQLSTREAM_SECRET_TOKEN') }}",
)


def outcome(text: str, *, plain: bool, monkeypatch: pytest.MonkeyPatch) -> object:
    """Returns the result or the findings, and the log; `plain=False` always renders with Jinja."""
    logged: list[tuple[str, bool]] = []
    with monkeypatch.context() as patch:
        if not plain:
            patch.setattr(rendering_of_models, "read_plain", lambda _: None)
        made = renderer(MACROS)
        patch.setattr("tests.support.rendering.LOGGED", logged)
        try:
            rendered = made.render(model(text))
        except FindingsError as error:
            return error.findings, logged
        return rendered, logged


@pytest.mark.parametrize("text", [*PLAIN, *LEFT_TO_JINJA, *WRONG])
def test_the_result_is_the_same_as_with_jinja(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path gives the same text, references, configuration, places, findings, macros and log as Jinja."""
    expected = outcome(text, plain=False, monkeypatch=monkeypatch)
    assert outcome(text, plain=True, monkeypatch=monkeypatch) == expected


@pytest.mark.parametrize("text", PLAIN)
def test_calls_with_literals_need_no_jinja(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates whose calls have only literal arguments are rendered without Jinja."""
    if "é" not in text:
        monkeypatch.setattr("sqlstream.compiler.render.model.render_file", None)
    assert renderer(MACROS).render(model(text)).sql is not None


def test_a_template_of_very_many_calls_is_left_to_jinja() -> None:
    """A template with more than MOST_CALLS calls is left to Jinja, whose limits count the tokens of all tags."""
    call = "{{ ref('a') }}"
    assert read_plain(TemplateSource("a.sql", call * MOST_CALLS)) is not None
    assert read_plain(TemplateSource("a.sql", call * (MOST_CALLS + 1))) is None


PIECES = st.sampled_from(
    [
        *("{{", "}}", "{{ ", " }}", "{%", "%}", "{#", "#}", "-", "ref", "config", "double", "var", "(", ")", "[", "]"),
        *("{", "}", "'", '"', "'a'", "'it''s'", '"b"', ",", "=", ":", "by=", "x=1", "1", "07", "none", "true", "None"),
        *("r'a'", "\\", "\n", "\r\n", " ", "#", "*", "**", "+", ".", "|", "~", "'days'", "é", "'''", "a", "not", "f("),
        *("{{ ref('a') }}", "{{ config(sink='b') }}", "{{ double(1) }}", "{{ var('days') }}", "select 1 "),
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=14).map("".join),
    st.lists(PIECES, max_size=6).map(lambda parts: "x {{ double(" + "".join(parts) + ") }} y"),
    st.lists(PIECES, max_size=6).map(lambda parts: "{{ config(" + "".join(parts) + ") }}{{ ref('a') }}"),
)


@given(text=TEXTS)
@settings(max_examples=400)
def test_any_template_gives_the_same_as_with_jinja(text: str) -> None:
    """Any template gives the same outcome with and without Jinja."""
    with pytest.MonkeyPatch.context() as patch:
        expected = outcome(text, plain=False, monkeypatch=patch)
        assert outcome(text, plain=True, monkeypatch=patch) == expected


@pytest.mark.parametrize("path", sorted(ROOT.glob("models/**/*.sql")), ids=lambda path: path.stem)
def test_the_examples_give_the_same_as_with_jinja(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repository's own models give the same outcome with and without Jinja."""
    text = path.read_text()
    expected = outcome(text, plain=False, monkeypatch=monkeypatch)
    assert outcome(text, plain=True, monkeypatch=monkeypatch) == expected
