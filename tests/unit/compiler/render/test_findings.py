"""Every mistake in a template is a finding at its exact position, and never a traceback."""

from __future__ import annotations

import pytest

from tests.support.rendering import finding_of, place_of

SYNTAX = [
    ("{{ a b }}", "jinja-syntax 1:6"),
    ("{{ config(sink='a', sink='b') }}", "jinja-syntax 1:21"),
    ("{{ config({'sink': 'a', 'sink': 'b'}) }}", "jinja-syntax 1:25"),
    ("{{ config({'sink': 'a'}, sink='b') }}", "jinja-syntax 1:26"),
    ("select\n  {{ 1 ? }}", "jinja-syntax 2:8"),
    ("{{ 'abc }}", "jinja-syntax 1:4"),
    ("{{ ) }}", "jinja-syntax 1:4"),
    ("{# abc", "jinja-syntax 1:1"),
    ("a\n{% endfor %}", "jinja-syntax 2:4"),
    ("a\n{% foo %}", "jinja-syntax 2:4"),
    ("\n{% if true %}\nx", "jinja-syntax 2:4"),
    ("{% set x = 1 %}{% if 1 %}{% endif %}{% for x in [1] %}\n", "jinja-syntax 1:40"),
    ("a {% set x %}{% if 1 %}{% endif %}", "jinja-syntax 1:6"),
    ("{% for x in [1] %}{% if x %}{% endfor %}", "jinja-syntax 1:32"),
    ("\n{% include 'x' %}", "jinja-syntax 2:4"),
    ("{% import 'x' as y %}", "jinja-syntax 1:4"),
    ("{% from 'x' import y %}", "jinja-syntax 1:4"),
    ("{% extends 'x' %}", "jinja-syntax 1:4"),
    ("{% block a %}{% endblock %}", "jinja-syntax 1:4"),
    ("{% autoescape true %}{% endautoescape %}", "jinja-syntax 1:4"),
    ("{{ " + "(" * 400 + "1" + ")" * 400 + " }}", None),
    ("{{ " + "not " * 2000 + "1 }}", None),
    ("{{ " + "1 + " * 5000 + "1 }}", None),
    ("{% for i in [1] %}" * 30 + "{% endfor %}" * 30, "jinja-limit 1:1"),
    ("{{ " + "9" * 5000 + " }}", "jinja-limit 1:4"),
]

UNDEFINED = [
    ("a {{ reff('x') }}", "jinja-undefined 1:6"),
    ("a\n {{ 1 + nope }}", "jinja-undefined 2:9"),
    ("{% if a.b %}{% endif %}", "jinja-undefined 1:7"),
    ("{{ target.nam }}", "jinja-undefined 1:11"),
    ("{{ model.nam }}", "jinja-undefined 1:10"),
    ("{{ ref('x').schema }}", "jinja-undefined 1:13"),
    ("{{ ref(nope) }}", "jinja-undefined 1:8"),
    ("{{ config(tags=nope) }}", "jinja-undefined 1:16"),
    ("{{ 'a'|uper }}", "jinja-undefined 1:8"),
    ("{{ 'a'|random }}", "jinja-undefined 1:8"),
    ("{{ 1 is evn }}", "jinja-undefined 1:9"),
    ("{{ lipsum() }}", "jinja-undefined 1:4"),
    ("{{ loop.index }}", "jinja-undefined 1:4"),
    ("{{ tojson([nope]) }}", "jinja-undefined 1:12"),
    ("a\n {{ [1][nope] }}", "jinja-undefined 2:9"),
    ("{{ 'a'[nope] }}", "jinja-undefined 1:8"),
    ("{{ (1, 2)[[1][5]] }}", "jinja-undefined 1:15"),
    ("{{ [1, nope] }}", "jinja-undefined 1:8"),
    ("{{ '%r' % nope }}", "jinja-undefined 1:11"),
]

FAILED = [
    ("select {{ 1 / 0 }}", "jinja-failed 1:11"),
    ("\n\n  {{ 'a' + 1 }}", "jinja-failed 3:6"),
    ("{% for a in 5 %}{% endfor %}", "jinja-failed 1:4"),
    ("{{ 'a'.index('b') }}", "jinja-failed 1:4"),
    ("{{ fromjson('x') }}", "jinja-failed 1:4"),
    ("{{ tojson(ref) }}", "jinja-failed 1:4"),
    ("{{ ref }}", "jinja-failed 1:4"),
    ("{{ ref() }}", "jinja-failed 1:4"),
    ("{{ ref(1) }}", "jinja-failed 1:4"),
    ("{{ ref('x', version=2) }}", "unknown-ref 1:4"),
    ("{{ source('x') }}", "jinja-failed 1:4"),
    ("{{ config('x') }}", "jinja-failed 1:4"),
    ("{{ config(a=ref) }}", "jinja-failed 1:4"),
    ("{{ return(1) }}", "jinja-failed 1:4"),
    ("{{ 'a'.upper(1, 2) }}", "jinja-failed 1:4"),
    ("{{ range('a') }}", "jinja-failed 1:4"),
    ("{{ 2.5 ** 100000 }}", "jinja-failed 1:4"),
    ("{{ [3, 'a']|sort }}", "jinja-failed 1:4"),
    ("{{ this() }}", "jinja-unsafe 1:4"),
]

OWN = [
    ("{{ var('dayz') }}", "missing-var 1:4"),
    ("x {{ env_var('NOPE') }}", "missing-env-var 1:6"),
    ("{{ env_var('SQLSTREAM_SECRET_TOKEN') }}", "secret-not-allowed 1:4"),
    ("{{ env_var('SQLSTREAM_SECRET_NOPE', 'default') }}", "secret-not-allowed 1:4"),
    ("a\n{{ exceptions.raise_compiler_error('No such region.') }}", "compiler-error 2:4"),
    ("{% if true %}\n {% do exceptions.raise_compiler_error('no') %}{% endif %}", "compiler-error 2:8"),
    ("{{ config.require('sink') }}", "missing-key 1:4"),
]

UNSAFE = [
    "{{ ''.__class__.__mro__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ [1]|map(attribute='__class__')|list }}",
    "{{ [1]|groupby('__class__') }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{0[__class__]}'.format('') }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{{ ''.format.__self__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ ref.__globals__ }}",
    "{{ ref._function }}",
    "{{ ref.__call__.__func__ }}",
    "{{ config.get._function }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ cycler('a').__init__.__globals__ }}",
    "{{ exceptions.warn._function }}",
    "{{ namespace.__init__ }}",
    "{{ (1).__add__(2) }}",
    "{{ [].append.__self__ }}",
    "{{ run_started_at.__reduce__() }}",
    "{{ run_started_at.tzinfo.__class__ }}",
    "{% for x in [1] %}{{ loop._iterable }}{% endfor %}",
    "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
    "{% macro m() %}{{ caller._environment }}{% endmacro %}{% call m() %}{% endcall %}",
    "{{ 'x'.encode() }}",
    "{{ (1).to_bytes(8, 'big') }}",
    "{{ {}.fromkeys.__self__ }}",
    "{% set l = [2, 1] %}{% do l.sort(key='a'.center) %}",
]


@pytest.mark.parametrize(("text", "place"), [*SYNTAX, *UNDEFINED, *FAILED, *OWN])
def test_finding(text: str, place: str | None) -> None:
    """Each mistake has its own code and column (None: anywhere in the file)."""
    finding = finding_of(text)
    assert place is None or place_of(finding) == place
    for line in (finding.message, finding.why, finding.fix):
        assert line
        assert "\n" not in line
    assert not finding.message.endswith(".")


@pytest.mark.parametrize("text", UNSAFE)
def test_python_internals_are_refused(text: str) -> None:
    """A template that accesses Python internals is refused."""
    assert finding_of(text).code == "jinja-unsafe"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{{ reff('x') }}", "`ref`"),
        ("{% set amount = 1 %}{{ amout }}", "`amount`"),
        ("{{ env_vr('x') }}", "`env_var`"),
        ("{{ var('dais') }}", "`days`"),
        ("{{ target.nmae }}", "`name`"),
        ("{{ 'a'|uper }}", "`upper`"),
    ],
)
def test_the_nearest_name_is_suggested(text: str, name: str) -> None:
    """The fix for an unknown name suggests the most similar known name."""
    assert name in finding_of(text).fix


def test_no_finding_shows_a_secret() -> None:
    """No text of a finding contains the value of a secret."""
    finding = finding_of("{{ env_var('SQLSTREAM_SECRET_TOKEN') }}")
    assert "canary" not in repr(finding)
