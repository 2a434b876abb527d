"""Model templates give SQL, references and configuration as in dbt."""

from __future__ import annotations

import pytest

from sqlstream.compiler.render.rendered import Reference
from sqlstream.errors import Severity
from sqlstream.location import Location
from sqlstream.project.yaml import Located
from tests.support.rendering import LOGGED, finding_of, model, render, renderer

PATH = "models/orders.sql"


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("select 1\n", "select 1\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("{{ ref('customers') }}", "customers"),
        ("{{ ref('examples', 'customers') }}", "customers"),
        ("{{ ref('left') }} {{ ref('2x') }} {{ ref('a`b') }}", "`left` `2x` `a``b`"),
        ("{{ source('aws', 'logs') }}", "aws__logs"),
        ("{{ source('aws', 'my-logs') }}", "`aws__my-logs`"),
        (
            "{{ ref('left').name }} {{ source('a', 'b').identifier }} {{ this }} {{ this.name }}",
            "left a__b orders orders",
        ),
        ("{{ ref('a') ~ '_x' }}", "a_x"),
        ("{{ var('days') + 1 }} {{ var('nope', 3) }} {{ var('nope', default=none) }}", "8 3 None"),
        ("{{ env_var('HOME') }} {{ env_var('NOPE', 'x') }}", "/home/ana x"),
        (
            "{{ target.name }} {{ target }} {{ project_name }} {{ execute }} {{ invocation_id }}",
            "local local examples False 0000-1",
        ),
        ("{{ run_started_at.strftime('%Y-%m-%d') }}", "2026-01-02"),
        ("{{ model.name }} {{ model.path }}", f"orders {PATH}"),
        ("{{ fromjson('{\"a\": [1, 2]}').a[1] }} {{ fromjson('no', 5) }}", "2 5"),
        ("{{ tojson({'b': [1, none, 'é<']}) }}", '{"b": [1, null, "é<"]}'),
        ("{{ {'b': 1}|tojson }}", '{"b": 1}'),
        ("{% for c in var('columns') %}{{ c }}{{ ', ' if not loop.last }}{% endfor %}", "a, b"),
        ("{% for c in var('columns') %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/2 2/2 "),
        ("{% for i in [1, 2, 3] if i > 1 %}{{ i }}of{{ loop.length }} {% else %}none{% endfor %}", "2of2 3of2 "),
        ("{% for i in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for i in [1, [2, [3]]] recursive %}{{ loop(i) if i is iterable else i }}{% endfor %}", "123"),
        ("{% set n = namespace(x=0) %}{% for i in range(4) %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}", "6"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x|upper }}", "A1"),
        ("{% set l = [] %}{% do l.append(1) %}{{ l }}", "[1]"),
        ("{{ ['a', 'b']|map('upper')|join('-') }} {{ ['b', 'a']|sort }} {{ 'abc'[1:] }}", "A-B ['a', 'b'] bc"),
        ("{{ '%s-%03d' % ('a', 7) }} {{ '{:>4}{a}'.format(1, a=2) }} {{ '%s'|format(1) }}", "a-007    12 1"),
        ("{{ 'a' if false }}x{{ nope is defined }}{{ nope|default('d') }}", "xFalsed"),
        (
            "{{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 8 }} {{ 1 < 2 < 3 }} {{ 'a' in 'cat' }} {{ 1 not in [2] }}",
            "3 3 256 True True True",
        ),
        ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}", "aba"),
        ("{% set comma = joiner() %}{% for i in [1, 2] %}{{ comma() }}{{ i }}{% endfor %}", "1, 2"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "a=1"),
        ("{% raw %}{{ x }}{% endraw %}{# gone #}", "{{ x }}"),
        ("{% filter upper %}abc{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}", "ABC1"),
        ("{{ 'a'|safe }}{{ '<'|string }}", "a<"),
        (
            "{{ config.get('sink', 'no') }}{{ config(sink='s') }}{{ config.get('sink') }}{{ config.require('sink') }}",
            "noss",
        ),
    ],
)
def test_a_template_renders_as_in_dbt(text: str, sql: str) -> None:
    """A template renders to the same SQL as in dbt."""
    assert render(text).sql == sql


def test_references_are_recorded_in_order_with_their_places() -> None:
    """Each call of ref() and source() is recorded as one reference, in order and with its own column."""
    text = "select *\nfrom {{ ref('a') }} join {{ source('b', 'c') }} join {{ref('a')}}"
    assert render(text).references == (
        Reference("ref", ("a",), Location(PATH, 2, 9)),
        Reference("source", ("b", "c"), Location(PATH, 2, 29)),
        Reference("ref", ("a",), Location(PATH, 2, 56)),
    )


def test_a_reference_in_a_macro_lists_its_calls() -> None:
    """A reference in a macro has its place in the macro and the call in the model."""
    rendered = render("\n  {{ latest() }}", "{% macro latest() %}\n {{ ref('x') }}{% endmacro %}")
    assert rendered.references == (Reference("ref", ("x",), Location("macros/0.sql", 2, 5), (Location(PATH, 2, 6),)),)


def test_config_records_each_key_with_its_place() -> None:
    """The place of a configuration value is its key, also in a call of several lines."""
    text = "{{ config(sink='sink',\n   tags = ['tags'], meta=(\n {'a': 1})) }}select 1"
    assert render(text).config == {
        "sink": Located("sink", Location(PATH, 1, 11)),
        "tags": Located(["tags"], Location(PATH, 2, 4)),
        "meta": Located({"a": 1}, Location(PATH, 2, 21)),
    }


def test_config_takes_a_mapping() -> None:
    """config({...}) records the mapping's keys, each at its own place."""
    assert render("{{ config({'sink': 'a',\n 'output_mode': 'append'}) }}").config == {
        "sink": Located("a", Location(PATH, 1, 12)),
        "output_mode": Located("append", Location(PATH, 2, 2)),
    }


def test_later_config_wins() -> None:
    """If several calls of config() set the same key, the last value and its place count."""
    config = render("{{ config(sink='a', tags=['t']) }}\n{{ config(sink='b') }}").config
    assert config["sink"] == Located("b", Location(PATH, 2, 11))
    assert config["tags"].value == ["t"]


def test_config_keeps_its_original_values() -> None:
    """A list that the template changes after passing it to config() keeps its original value in the configuration."""
    text = "{% set t = ['a'] %}{{ config(tags=t) }}{% do t.append('b') %}"
    assert render(text).config["tags"].value == ["a"]


def test_config_get_reads_yaml_too() -> None:
    """config.get() reads values from properties files, and the last patch has precedence."""
    place = Location("models/p.yml", 3)
    file = model("{{ config.get('sink') }}", configs=({"sink": Located("x", place)}, {"sink": Located("y", place)}))
    assert renderer().render(file).sql == "y"


def test_a_template_cannot_change_the_project() -> None:
    """A model that changes a project variable does not change it for the next model."""
    made = renderer()
    assert made.render(model("{% set c = var('columns') %}{% do c.append('z') %}{{ c|length }}")).sql == "3"
    assert made.render(model("{{ var('columns')|length }}")).sql == "2"


def test_warnings_are_findings_of_the_rendered_model() -> None:
    """exceptions.warn() adds a warning with its place and renders to an empty text."""
    rendered = render("a\n{{ exceptions.warn('old column') }}b")
    assert rendered.sql == "a\nb"
    (warning,) = rendered.findings
    assert (warning.code, warning.severity, warning.location) == (
        "compiler-warning",
        Severity.WARNING,
        Location(PATH, 2, 4),
    )


def test_log_calls_the_log_once() -> None:
    """log() passes the message and its `info` flag; building a source map does not log again."""
    LOGGED.clear()
    made = renderer()
    rendered = made.render(model("{{ log('one') }}{% do log(2, info=true) %}x"))
    made.source_map(rendered)
    assert (rendered.sql, LOGGED) == ("x", [("one", False), ("2", True)])


def test_models_are_isolated_from_each_other() -> None:
    """Variables, references and configuration of one model are not visible in the next."""
    made = renderer()
    made.render(model("{% set mine = 1 %}{{ config(sink='a') }}{{ ref('x') }}", "first"))
    second = made.render(model("{{ mine is defined }} {{ this }} {{ config.get('sink') }}", "second"))
    assert (second.sql, second.references, dict(second.config)) == ("False second None", (), {})


def test_ref_of_another_project_is_refused() -> None:
    """ref() with two arguments accepts only the name of this project."""
    assert finding_of("{{ ref('other', 'x') }}").code == "unknown-ref"
