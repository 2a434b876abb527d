"""Macros can be called by name from every file, and see the model that calls them."""

from __future__ import annotations

import pytest

from sqlstream.location import Location
from tests.support.rendering import finding_of, place_of, render, renderer


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


def test_macros_call_each_other_in_any_order_of_files() -> None:
    """Macros can call macros of earlier and later files."""
    first = "{% macro a(n) %}a{{ b(n) }}{% endmacro %}"
    second = "{% macro b(n) %}b{% if n %}{{ a(n - 1) }}{% endif %}{% endmacro %}"
    rendered = render("{{ a(1) }}", first, second)
    assert (rendered.sql, rendered.macros_used) == ("abab", ("a", "b"))


def test_a_name_is_defined_once() -> None:
    """A macro with the name of another macro or of a built-in function gives a finding at its name."""
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
def test_a_mistake_in_a_macro_file_is_reported_once(macro: str, place: str) -> None:
    """A mistake in a macro file is reported when the renderer is made and does not affect other macro files."""
    made = renderer(macro, "{% macro fine() %}{% endmacro %}")
    assert [place_of(finding) for finding in made.macro_findings] == [place]


def test_a_failure_in_a_macro_lists_its_calls() -> None:
    """A finding in a macro points at the innermost macro and lists the calls, starting in the model."""
    macros = "{% macro outer() %}\n  {{ inner(0) }}{% endmacro %}\n{% macro inner(n) %}\n\n   {{ 1 / n }}{% endmacro %}"
    finding = finding_of("select\n {{ outer() }}", macros)
    assert finding.location == Location("macros/0.sql", 5, 7)
    assert finding.calls == (Location("models/orders.sql", 2, 5), Location("macros/0.sql", 2, 6))


def test_a_missing_argument_is_found_where_it_is_used() -> None:
    """A missing argument gives a finding where the macro uses it, with the place of the call."""
    finding = finding_of("{{ m() }}", "{% macro m(a) %}\n{{ a }}{% endmacro %}")
    assert place_of(finding) == "jinja-undefined 2:4"
    assert finding.calls == (Location("models/orders.sql", 1, 4),)
