"""Mutations of templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.fuzz_jinja_pieces import ATOMS, CONFIG_KEYS, FILTERS, STATEMENTS, TESTS
from tests.fuzz.fuzz_pools import insert, odd_text, size

_DELIMITERS = re.compile(r"\{\{|\}\}|\{%|%\}|\{#|#\}")
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def expression(rng: Random, depth: int = 2) -> str:
    """Returns an expression of a few atoms, filters and operators."""
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(ATOMS)
    inner, other = expression(rng, depth - 1), expression(rng, depth - 1)
    forms = (
        f"{inner}|{rng.choice(FILTERS)}",
        f"{inner}|{rng.choice(FILTERS)}({other})",
        f"({inner})|{rng.choice(FILTERS)}({other}, {rng.choice(ATOMS)})",
        f"{inner} is {rng.choice(TESTS)}",
        f"{inner} {rng.choice(('+', '-', '*', '/', '//', '%', '**', '~', '==', '<', 'in', 'and', 'or', 'if'))} {other}",
        f"[{inner}, {other}]",
        f"({inner})[{other}]",
        f"({inner}).{rng.choice(('a', 'items()', 'append(1)', 'name', 'format(1)', 'split()', 'upper', 'pop()'))}",
        f"{rng.choice(('ref', 'source', 'var', 'env_var', 'config', 'log', 'tojson', 'fromjson'))}({inner}, {other})",
    )
    return rng.choice(forms)


def statement(rng: Random) -> str:
    """Returns the tag of one statement."""
    dash = rng.choice(("", "", "-", "+"))
    return "{%" + dash + " " + rng.choice(STATEMENTS).replace("{}", expression(rng, 1)) + " %}"


def insert_expression(rng: Random, text: str) -> str:
    """Inserts an expression."""
    return insert(rng, text, "{{ " + expression(rng) + " }}")


def insert_statement(rng: Random, text: str) -> str:
    """Inserts a statement, usually without the tags that it needs around it."""
    return insert(rng, text, statement(rng))


def insert_statements(rng: Random, text: str) -> str:
    """Inserts several statements."""
    for _ in range(rng.randint(2, 6)):
        text = insert_statement(rng, text)
    return text


def delete_delimiter(rng: Random, text: str) -> str:
    """Removes, replaces or inserts one of `{{`, `}}`, `{%`, `%}`, `{#`, `#}`."""
    found = list(_DELIMITERS.finditer(text))
    if not found or rng.random() < 0.3:
        return insert(rng, text, rng.choice(("{{", "}}", "{%", "%}", "{#", "#}", "{{-", "-}}", "{%-", "-%}", "{", "}")))
    match = rng.choice(found)
    return text[: match.start()] + rng.choice(("", "{{", "%}", "{#")) + text[match.end() :]


def replace_expression(rng: Random, text: str) -> str:
    """Replaces an expression by another one."""
    return _in_expression(rng, text, lambda _: expression(rng))


def filter_expression(rng: Random, text: str) -> str:
    """Adds filters to an expression."""
    filters = "".join(
        f"|{rng.choice(FILTERS)}" + rng.choice(("", f"({expression(rng, 1)})")) for _ in range(rng.randint(1, 3))
    )
    return _in_expression(rng, text, lambda inner: f"({inner}){filters}")


def damage_expression(rng: Random, text: str) -> str:
    """Inserts an odd text into an expression."""
    return _in_expression(rng, text, lambda inner: insert(rng, inner, odd_text(rng)))


def configure(rng: Random, text: str) -> str:
    """Adds a call of config() with odd values."""
    pairs = ", ".join(f"{rng.choice(CONFIG_KEYS)}={expression(rng, 1)}" for _ in range(rng.randint(1, 3)))
    return "{{ config(" + pairs + ") }}\n" + text


def nest(rng: Random, text: str) -> str:
    """Adds very deep nesting of statements or of an expression."""
    depth = size(rng, 20_000)
    opening, closing = rng.choice(
        (
            ("{% if true %}", "{% endif %}"),
            ("{% for i in [1] %}", "{% endfor %}"),
            ("{% for i in [1, 2] %}", "{% endfor %}"),
            ("{% macro m() %}", "{% endmacro %}"),
            ("{% filter upper %}", "{% endfilter %}"),
            ("{{ " + "(" * depth + "1", ")" * depth + " }}"),
            ("{{ " + "[" * depth, "]" * depth + " }}"),
            ("{{ " + "{'a': " * depth + "1", "}" * depth + " }}"),
            ("{{ " + "not " * depth + "1", " }}"),
            ("{{ " + "-" * depth + "1", " }}"),
            ("{{ 1" + " + 1" * depth, " }}"),
            ("{{ 'a'" + " ~ 'a'" * depth, " }}"),
            ("{{ 'a'" + "|upper" * depth, " }}"),
            ("{{ 'a'" + ".a" * depth, " }}"),
            ("{{ 1 if 1" + " else 1 if 1" * depth, " }}"),
            ("{{ " + "ref(" * depth, ")" * depth + " }}"),
        )
    )
    times = 1 if opening.startswith("{{") else min(depth, 2000)
    return opening * times + text + closing * rng.choice((times, times - 1))


def recurse(rng: Random, text: str) -> str:
    """Adds a recursive macro, or a very long loop."""
    loops = (
        "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}",
        "{% for i in range(10 ** 9) %}{{ i }}{% endfor %}",
        "{% set l = [] %}{% for i in range(10 ** 6) %}{% do l.append(l|string) %}{% endfor %}{{ l }}",
        "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
        "{% for i in [1, [2, [3]]] recursive %}{{ loop([i]) }}{% endfor %}",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{% call m() %}{{ m() }}{% endcall %}{% endcall %}",
        "{% for i in range(" + str(size(rng, 10**7)) + ") %}a{% endfor %}",
        "{{ 'x' * " + str(size(rng, 10**9)) + " }}",
        "select 1 {% for i in range(" + str(size(rng, 5000)) + ") %} union all select {{ i }}{% endfor %}",
    )
    return insert(rng, text, rng.choice(loops))


def _in_expression(rng: Random, text: str, change: Callable[[str], str]) -> str:
    found = list(_EXPRESSION.finditer(text))
    if not found:
        return insert(rng, text, "{{ " + change("1") + " }}")
    match = rng.choice(found)
    return text[: match.start()] + "{{" + change(match[1]) + "}}" + text[match.end() :]


JINJA_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    *(insert_expression, insert_statement, insert_statements, delete_delimiter, replace_expression, filter_expression),
    *(damage_expression, configure, nest, recurse, insert_expression, replace_expression, configure),
)
"""Mutations of a template's text. Repeated ones are more likely."""
