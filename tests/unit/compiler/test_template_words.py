"""The words of a template, which do not depend on its formatting."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.compiler.manifest.state_method import KEYWORDS, read_macros, read_template

PARTS = (
    "select", "/*+ WATERMARK(at, '10  minutes') */", "a", ".", "`b  c`", ",", "'it''s  -- no comment'", "as", "name",
    "{{ var('x') }}", "+", "1.5e3", ",", "count", "(", "*", ")", "{{ m(a, \"b\") }}", "from", "{{ ref('orders') }}",
    "o", "{% if target.name == 'prod' %}", "where", "a", ">=", "{{ var('least', 2) }}", "and", "not", "b", "is", "null",
    "{% else %}", "where", "a", "<>", "\"/* no comment */\"", "{% endif %}", "group", "by", "a",
    "{% for c in range(2) %}", "/*+ COALESCE(1) */", ",", "x", "{% endfor %}",
)  # fmt: skip
"""A template as a list of words; white space and comments are allowed between any two of them."""

BLANKS = st.sampled_from(
    [" ", "\n", "\t", "  \n ", " -- a comment's '\n", " /* a /* nested */ one; */ ", "\n{# of ' Jinja #}\n", " {# #} "]
)


def written(parts: tuple[str, ...], draw: st.DataObject) -> str:
    """Returns the parts with drawn blanks between them, keywords in any case, and blanks inside the Jinja."""
    text = ""
    for part in parts:
        keyword = part.upper() in KEYWORDS and draw.draw(st.booleans())
        inner = part.replace("{{ ", "{{" + draw.draw(st.sampled_from(["", " ", "\n  "]))) if "{{" in part else part
        text += draw.draw(BLANKS) + (part.upper() if keyword else inner)
    return text + draw.draw(BLANKS)


@given(st.data())
def test_formatting_does_not_change_the_words(data: st.DataObject) -> None:
    """White space, SQL and Jinja comments, the case of keywords and blanks inside Jinja do not change the words."""
    assert read_template(written(PARTS, data)).words == read_template(" ".join(PARTS)).words


@given(st.data(), st.integers(0, len(PARTS) - 1), st.sampled_from(["delete", "repeat", "change", "swap"]))
def test_every_other_change_changes_the_words(data: st.DataObject, at: int, kind: str) -> None:
    """Deleting, repeating, changing or swapping a part changes the words."""
    parts = list(PARTS)
    if kind == "delete":
        del parts[at]
    elif kind == "repeat":
        parts.insert(at, parts[at])
    elif kind == "change":
        parts[at] = parts[at].replace("{{ ", "{{ not ") if "{{" in parts[at] else parts[at] + "x"
    else:
        other = data.draw(st.integers(0, len(PARTS) - 1).filter(lambda index: PARTS[index] != PARTS[at]))
        parts[at], parts[other] = parts[other], parts[at]

    assert read_template(written(tuple(parts), data)).words != read_template(" ".join(PARTS)).words


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("select 'a  b'", "select 'a b'"),
        ("select `a  b`", "select `a b`"),
        ("select Total", "select total"),
        ("select a as END", "select a as end"),
        ("select t.FROM", "select t.from"),
        ("select FROM.t", "select from.t"),
        ("select /*+ A */ 1", "select /* A */ 1"),
        ("select {{ a }}_b", "select {{ a }} _b"),
        ("select a{{ b }}", "select a {{ b }}"),
        ("select {{ a }}{{ b }}", "select {{ a }} {{ b }}"),
        ("select '{{ a }}  b'", "select '{{ a }} b'"),
        ("select '{% if a %}x  {% endif %}'", "select '{% if a %}x {% endif %}'"),
        ("select 'it{% if a %}'{% else %}  x'{% endif %}", "select 'it{% if a %}'{% else %} x'{% endif %}"),
        ("select 1 -- {{ a() }} b", "select 1 -- {{ a() }}"),
        ("select 1 -- {{ a() }}", "select 1 -- {{ b() }}"),
        ("select 1 -- a\n{%- if a %} b {% endif %}", "select 1 -- a\n{% if a %} b {% endif %}"),
        ("select {{ 'a  b' }}", "select {{ 'a b' }}"),
        ("select {{ not x }}", "select {{ notx }}"),
        ("{% raw %}select {{ a }}{% endraw %}", "select {{ a }}"),
        ("select a > = b", "select a >= b"),
        ("select 'open  {{ a }}", "select 'open {{ a }}"),
        ("select {{ a", "select {{ b"),
        ("select \ue000 {{ a }}", "select {{ a }} \ue000"),
    ],
)
def test_significant_differences_change_the_words(first: str, second: str) -> None:
    """Text in strings, letter case of names, hints, and text directly next to Jinja change the words."""
    assert read_template(first).words != read_template(second).words


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("select f({{ a }}, {{ b }})", "select f( {{ a }},{{ b }} )"),
        ("select 1 {# a #}", "select 1;"),
        ("select 1", "{% raw %}select 1{% endraw %}"),
        ("select {{ f('a', b=\"c\") }}", "select {{f(\"a\",b = 'c')}}"),
        ("select a.b", "select a /* of */ . b"),
        ("select 1 -- one\n+ 2", "select 1 + 2 -- three"),
        ("{{ config(a=1) }}\nselect 1", "{{ config( a = 1 ) }}\n\n\nselect 1\n"),
    ],
)
def test_insignificant_differences_do_not_change_the_words(first: str, second: str) -> None:
    """Blanks next to symbols and additional blanks between words do not change the words."""
    assert read_template(first).words == read_template(second).words


def test_the_variables_that_a_template_reads() -> None:
    """The variables of a template are known by name, or unknown if a name is computed."""
    assert read_template("{{ var('a') }} {% if var(\"b\", 1) %}{% endif %} var('c')").variables == frozenset({"a", "b"})
    assert read_template("{{ var(name) }}").variables is None
    assert read_template("{{ xs | map(var) }}").variables is None
    assert read_template("{# var('a') #}").variables == frozenset()


def test_config_keys_have_their_tokens() -> None:
    """Each key of config() has the tokens of its value; `**` or positional arguments are under an empty key."""
    first = read_template("{{ config(sink='lake', meta={'a': [1, 2]}) }}{% do config({'b': 1}) %}{{ config.get('c') }}")

    assert set(first.config) == {"sink", "meta", ""}
    assert first.config["sink"] == ("'lake",)


def test_macros_are_read_from_their_files() -> None:
    """A macro's words include the text outside all macros of its file, and macros nested in it."""
    before = "{% set x = 1 %}{% macro a() %}{% macro c() %}1{% endmacro %}{{ c() }}{% endmacro %}\n"
    macros = read_macros([before + "{% macro b(n) -%} {{ n }} {%- endmacro %}"])
    other = read_macros([before + "\n\n{# twice #}{% macro b(n) -%} {{ n * 2 }} {%- endmacro %}"])

    assert set(macros) == {"a", "b"}
    assert macros["a"] == other["a"]
    assert macros["b"] != other["b"]
    assert read_macros([before.replace("1 %}", "2 %}")])["a"] != macros["a"]


@given(st.text(alphabet="a '\"`-*/+{}%#;(\\\n"))
def test_any_text_has_words(text: str) -> None:
    """Any text has words, even if it is neither SQL nor a template."""
    assert read_template(text) == read_template(text)


def test_shuffled_lines_change_the_words() -> None:
    """The order of lines changes the words."""
    lines = [f"select {number}" for number in range(9)]
    shuffled = random.Random(1).sample(lines, len(lines))

    assert read_template("\n".join(lines)).words != read_template("\n".join(shuffled)).words
