"""Macros are known everywhere by name, and see the model that calls them."""

from __future__ import annotations

import pytest
from rendering import finding_of, place_of, render, renderer

from sqlstream.location import Location


@pytest.mark.parametrize(
    ("text", "macro", "sql"),
    [
        ("{{ m(1) }}", "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}", "12"),
        ("{{ m(b=1, a=3) }}", "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}", "31"),
        ("{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}", "(2,){'x': 3}"),
        ("{{ m(*[1, 2], **{'c': 3}) }}", "{% macro m(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}", "123"),
        ("{% call m() %}body{% endcall %}", "{% macro m() %}<{{ caller() }}>{% endmacro %}", "<body>"),
        ("{% call(x) m() %}body {{ x }}{% endcall %}", "{% macro m() %}{{ caller(7) }}{% endmacro %}", "body 7"),
        ("{{ m() }}", "{% macro m() %}{{ this }} {{ ref('x') }} {{ config(sink='a') }}{% endmacro %}", "orders x "),
        ("{% set x = m() %}{{ x[1] + 1 }}", "{% macro m() %}text{{ return([1, 2]) }}{% endmacro %}", "3"),
        (
            "{{ m(3)|length }}",
            "{% macro m(n) %}{% for i in [1] %}{% if n %}{% do return([n, n]) %}{% endif %}{% endfor %}{% endmacro %}",
            "2",
        ),
        (
            "{{ m() }}",
            "{% macro m() %}{{ return(n() + 1) }}{% endmacro %}{% macro n() %}{{ return(1) }}{% endmacro %}",
            "2",
        ),
        ("{{ m() is none }}", "{% macro m() %}{{ return(none) }}{% endmacro %}", "True"),
        ("{{ m(5) }}", "{% macro m(n) %}{{ n }}{% if n > 1 %}{{ m(n - 1) }}{% endif %}{% endmacro %}", "54321"),
        ("{% macro own() %}own{% endmacro %}{{ own() }} {{ m() }}", "{% macro m() %}m{% endmacro %}", "own m"),
        ("{% macro m() %}mine{% endmacro %}{{ m() }}", "{% macro m() %}global{% endmacro %}", "mine"),
        ("{{ _m() }}", "{% macro _m() %}private{% endmacro %}", "private"),
    ],
)
def test_macro(text: str, macro: str, sql: str) -> None:
    """Arguments, callers, return values and recursion work as in dbt."""
    assert render(text, macro).sql == sql


def test_macros_call_each_other_whatever_the_order_of_files() -> None:
    """A macro of an earlier file may call one of a later file, and the other way round."""
    first = "{% macro a(n) %}a{{ b(n) }}{% endmacro %}"
    second = "{% macro b(n) %}b{% if n %}{{ a(n - 1) }}{% endif %}{% endmacro %}"
    rendered = render("{{ a(1) }}", first, second)
    assert (rendered.sql, rendered.macros_used) == ("abab", ("a", "b"))


def test_a_name_is_defined_once() -> None:
    """A second macro of one name is a finding at its name, and so is one with a function's name."""
    made = renderer("{% macro a() %}{% endmacro %}", "\n{% macro a() %}{% endmacro %}{% macro ref() %}{% endmacro %}")
    assert [place_of(finding) for finding in made.macro_findings] == ["duplicate-name 2:10", "duplicate-name 2:39"]


@pytest.mark.parametrize(
    ("macro", "place"),
    [
        ("{% macro a( %}", "jinja-syntax 1:13"),
        ("\n{% macro a() %}", "jinja-syntax 2:4"),
        ("{{ nope }}", "jinja-undefined 1:4"),
        ("\n {{ ref('x') }}", "jinja-failed 2:5"),
        ("{% set x = 'a' * 10 ** 9 %}", "jinja-limit 1:4"),
    ],
)
def test_macro_files_have_findings_of_their_own(macro: str, place: str) -> None:
    """What is wrong with a macro file itself is found when the renderer is made, and does not stop other files."""
    made = renderer(macro, "{% macro fine() %}{% endmacro %}")
    assert [place_of(finding) for finding in made.macro_findings] == [place]


def test_a_failure_in_a_macro_names_the_lines_that_led_there() -> None:
    """The finding lies in the innermost macro; its calls begin in the model."""
    macros = "{% macro outer() %}\n  {{ inner(0) }}{% endmacro %}\n{% macro inner(n) %}\n\n   {{ 1 / n }}{% endmacro %}"
    finding = finding_of("select\n {{ outer() }}", macros)
    assert finding.location == Location("macros/0.sql", 5, 7)
    assert finding.calls == (Location("models/orders.sql", 2, 5), Location("macros/0.sql", 2, 6))


def test_a_missing_argument_is_found_where_it_is_used() -> None:
    """An argument that the call leaves out fails in the macro, and the call is named."""
    finding = finding_of("{{ m() }}", "{% macro m(a) %}\n{{ a }}{% endmacro %}")
    assert place_of(finding) == "jinja-undefined 2:4"
    assert finding.calls == (Location("models/orders.sql", 1, 4),)
