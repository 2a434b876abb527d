"""Jinja in YAML strings gives native values and keeps secrets as references."""

from __future__ import annotations

import pytest

from sqlstream.compiler.render.yaml import SinkRenderer, make_yaml_renderer
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.project.yaml import Located
from tests.support.rendering import ENV, VARIABLES, options

PLACE = Location("sources.yml", 3, 14)
TOKEN = SecretName("SQLSTREAM_SECRET_TOKEN")
OTHER = SecretName("SQLSTREAM_SECRET_OTHER")


def rendered(text: str, *, secrets: bool = True) -> object:
    """Returns a YAML string rendered with the tests' variables."""
    return make_yaml_renderer(ENV)(VARIABLES, "local")(text, PLACE, secrets=secrets)


def finding_of(text: str, *, secrets: bool = True) -> Finding:
    """Returns the only finding of a YAML string."""
    with pytest.raises(FindingsError) as caught:
        rendered(text, secrets=secrets)
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ var('columns') }}", ["a", "b"]),
        ("{{ var('days') }}", 7),
        (" {{ var('days') > 5 }}\n", True),
        ("{{ {'a': (1, 2)} }}", {"a": [1, 2]}),
        ("{{ none }}", None),
        ("{{ fromjson('[1.5]') }}", [1.5]),
        ("{{ tojson([1]) }}", "[1]"),
        ("{{ var('days') }} days", "7 days"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("{% if target.name == 'local' %}here{% else %}there{% endif %}", "here"),
        ("{{ env_var('HOME') }}/{{ env_var('NOPE', 'x') }}", "/home/ana/x"),
        ("{{ target.name == 'local' | as_bool }}", True),
        ("{{ env_var('NOPE', 'False') | as_bool }}", False),
        ("{{ env_var('NOPE', ' 12') | as_number }}", 12),
        ("{{ '-1.50' | as_number }}", -1.5),
        ("{{ '1e5' | as_number }}", "1e5"),
        ("{{ ['true' | as_native, '3' | as_native, 'x' | as_native, 4 | as_native] }}", [True, 3, "x", 4]),
        ("{{ 5 | as_text }}", "5"),
    ],
)
def test_value(text: str, value: object) -> None:
    """A string that is one expression gives the expression's value; any other string gives text."""
    assert rendered(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ env_var('SQLSTREAM_SECRET_TOKEN') }}", SecretText((TOKEN,))),
        ("{{ env_var('SQLSTREAM_SECRET_OTHER') }}", SecretText((OTHER,))),
        ("a{{ env_var('SQLSTREAM_SECRET_TOKEN') }}b", SecretText(("a", TOKEN, "b"))),
        ("{{ 'a' ~ env_var('SQLSTREAM_SECRET_TOKEN') + 'b' }}", SecretText(("a", TOKEN, "b"))),
        ("{{ '%s:x' % env_var('SQLSTREAM_SECRET_TOKEN') }}", SecretText((TOKEN, ":x"))),
        (
            "{{ env_var('SQLSTREAM_SECRET_OTHER') }}{{ env_var('SQLSTREAM_SECRET_TOKEN') }}",
            SecretText((OTHER, TOKEN)),
        ),
        ("{{ env_var('SQLSTREAM_SECRET_TOKEN', 'default') }}", SecretText((TOKEN,))),
        ("{{ env_var('SQLSTREAM_SECRET_OTHER', 'default') }}", "default"),
        ("{{ env_var('SQLSTREAM_SECRET_TOKEN')|default('x') }}", SecretText((TOKEN,))),
    ],
)
def test_secret(text: str, value: object) -> None:
    """A secret stays a reference within its text; an unset secret with a default gives the default."""
    assert rendered(text) == value


@pytest.mark.parametrize(
    "expression",
    [
        "{}|upper",
        "{}|length",
        "{}|list",
        "{}|tojson",
        "{}|replace('a', 'b')",
        "{}.upper()",
        "{}[0]",
        "{}[:3]",
        "{} == ''",
        "'a' in {}",
        "[{}]",
        "[{}]|string",
        "tojson([{}])",
        "'%r' % {}",
        "'{{!r}}'.format({})",
        "[{}]|map('upper')|first",
        "{{'a': {}}}",
    ],
)
def test_a_secret_cannot_be_changed(expression: str) -> None:
    """Expressions that inspect or change a secret are refused."""
    text = "{{ " + expression.format("env_var('SQLSTREAM_SECRET_TOKEN')") + " }}"
    assert (finding_of(text).code, finding_of(text).location) == ("secret-not-allowed", PLACE)


def test_a_secret_is_refused_where_secrets_are_not_allowed() -> None:
    """Where secrets are not allowed, an unset secret with a default is refused too."""
    assert finding_of("{{ env_var('SQLSTREAM_SECRET_X', '') }}", secrets=False).code == "secret-not-allowed"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ nope }}", "jinja-undefined"),
        ("{{ ref('x') }}", "jinja-undefined"),
        ("{{ var('x') }}", "missing-var"),
        ("{{ env_var('NOPE') }}", "missing-env-var"),
        ("{{ 1 +", "jinja-syntax"),
        ("{{ var }}", "jinja-failed"),
        ("{{ 'a' * 10 ** 9 }}", "jinja-limit"),
        ("{{ ''.__class__ }}", "jinja-unsafe"),
    ],
)
def test_finding(text: str, code: str) -> None:
    """A mistake in the Jinja of a YAML string gives a finding at the start of the string."""
    assert (finding_of(text).code, finding_of(text).location) == (code, PLACE)


def test_the_target_is_unknown_before_it_is_chosen() -> None:
    """Without a target, `target` is undefined."""
    render = make_yaml_renderer(ENV)(VARIABLES, None)
    with pytest.raises(FindingsError, match="jinja-undefined"):
        render("{{ target.name }}", PLACE, secrets=False)


def test_a_renderer_keeps_no_state_between_strings() -> None:
    """Secrets, limits and failures of one string do not affect the next."""
    render = make_yaml_renderer(ENV)(VARIABLES, "local")
    assert render("{{ env_var('SQLSTREAM_SECRET_TOKEN') }}", PLACE, secrets=True) == SecretText((TOKEN,))
    with pytest.raises(FindingsError):
        render("{% for i in range(1000000) %}{{ i }}{% endfor %}", PLACE, secrets=True)
    assert render("{{ env_var('SQLSTREAM_SECRET_OTHER') }}", PLACE, secrets=True) == SecretText((OTHER,))
    assert render("{{ 1 }}", PLACE, secrets=False) == 1


def test_sink_values_are_rendered_for_the_model() -> None:
    """A sink's path and options can use the model's name, tags and meta; values that are not text stay unchanged."""

    def sink(value: object, *, secrets: bool = False) -> object:
        model = {"name": "orders", "tags": ["a"], "meta": {"owner": "ana"}}
        return SinkRenderer(model, options())(Located(value, PLACE), secrets=secrets)

    assert sink("{{ target.name }}/{{ model.name }}/{{ model.meta.owner }}") == "local/orders/ana"
    assert sink("{{ model.tags }}") == ["a"]
    assert sink(5) == 5
    assert sink("x{{ env_var('SQLSTREAM_SECRET_TOKEN') }}", secrets=True) == SecretText(("x", TOKEN))
