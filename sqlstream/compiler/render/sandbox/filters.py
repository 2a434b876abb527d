"""The filters and tests of templates: Jinja's, each with a cost, without those that SQL does not need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from jinja2.environment import Environment
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from jinja2.tests import TESTS
from jinja2.utils import pass_environment

from sqlstream.compiler.render.sandbox.budget import Budget
from sqlstream.compiler.render.sandbox.methods import price_join, price_product, price_replace
from sqlstream.compiler.render.sandbox.operators import apply_operator
from sqlstream.compiler.render.sandbox.problems import TemplateProblem
from sqlstream.compiler.render.sandbox.template_values import to_json

if TYPE_CHECKING:
    from sqlstream.compiler.render.sandbox.bounded import BoundedEnvironment

Function = Any
"""A filter, a test or its cost function. Jinja and Python do not check the arguments."""

REMOVED = frozenset(
    {"escape", "e", "forceescape", "pprint", "random", "striptags", "urlize", "xmlattr", "filesizeformat"}
)
"""Filters for web pages, and `random`: two compilations of the same project must produce the same SQL."""

FREE = frozenset({"length", "count", "first", "last"})
"""Filters whose work does not grow with their input."""

UNTOUCHED = frozenset({"default", "d", "safe"})
"""Filters that return their input, or their argument, unchanged."""

SLOW = frozenset({"title", "wordcount", "wordwrap", "urlencode", "sort", "unique", "groupby", "dictsort", "truncate"})
"""Filters that take about ten times as long per character or item as others."""

LARGEST_PRECISION = 1_000
"""The most decimal places for |round, which computes 10 to that power."""

NUMBER = re.compile(r"[+-]?\d+(?P<fraction>\.\d+)?", re.ASCII)

INTERNAL = (Context, EvalContext, Environment)
COMPARING_TESTS = frozenset(
    {"eq", "==", "equalto", "ne", "!=", "lt", "<", "lessthan", "le", "<=", "gt", ">", "greaterthan", "ge", ">=", "in"}
    | {"upper", "lower"}
)


def _center(budget: Budget, _value: object, width: int = 80) -> None:
    budget.require_size(width)


def _indent(budget: Budget, value: object, width: int | str = 4, *_options: object, **_named: object) -> None:
    size = len(width) if isinstance(width, str) else width
    budget.require_size(len(str(value)) + (str(value).count("\n") + 1) * size)


def _batch(budget: Budget, _value: object, linecount: int, fill_with: object = None) -> None:
    budget.require_size(0 if fill_with is None else linecount)


def _slice(budget: Budget, _value: object, slices: int, *_fill_with: object, **_named: object) -> None:
    budget.require_size(slices)
    budget.spend(max(slices, 0))


def _wordwrap(budget: Budget, value: object, *options: object, **named: object) -> None:
    longest = max((len(text) for text in (*options, *named.values()) if isinstance(text, str)), default=1)
    budget.require_size(len(str(value)) * (1 + longest))


def _round(_budget: Budget, _value: object, precision: int = 0, *_method: object, **_named: object) -> None:
    if abs(precision) > LARGEST_PRECISION:
        raise TemplateProblem(
            "jinja-limit",
            f"|round to {precision:,} places",
            f"rounding computes 10 to the power of the places, so at most {LARGEST_PRECISION:,} are allowed",
            "use fewer places",
        )


def _sum(budget: Budget, value: Any, _attribute: object = None, start: object = 0, **_named: object) -> None:
    if isinstance(start, list | tuple) and hasattr(value, "__len__"):
        budget.spend(len(value) * budget.weigh(value))


def _trim(budget: Budget, value: object, chars: str | None = None) -> None:
    price_product(budget, str(value), chars)


PRICES: dict[str, Function] = {
    "center": _center,
    "indent": _indent,
    "batch": _batch,
    "slice": _slice,
    "wordwrap": _wordwrap,
    "round": _round,
    "sum": _sum,
    "trim": _trim,
}
"""Cost functions of filters that are slow or return more than their input. Each takes the budget and the filter's
arguments.
"""


@pass_environment
def _format(environment: BoundedEnvironment, value: object, *args: object, **named: object) -> object:
    return apply_operator(environment.budget, "%", environment.text(value), named or args)


@pass_environment
def _string(environment: BoundedEnvironment, value: object) -> str:
    return environment.text(value)


@pass_environment
def _replace(environment: BoundedEnvironment, value: object, old: object, new: object, count: int | None = None) -> str:
    text, old_text, new_text = environment.text(value), environment.text(old), environment.text(new)
    times = -1 if count is None else count
    price_replace(environment.budget, text, old_text, new_text, times)
    return text.replace(old_text, new_text, times)


@pass_environment
def _join(environment: BoundedEnvironment, value: Iterable[object], d: object = "", attribute: Any = None) -> str:
    parts = list(value) if attribute is None else [make_attrgetter(environment, attribute)(part) for part in value]
    separator = environment.text(d)
    price_join(environment.budget, separator, parts)
    return separator.join(environment.text(part) for part in parts)


@pass_environment
def _tojson(environment: BoundedEnvironment, value: object, indent: int | None = None) -> object:
    return environment.plain(to_json(environment.budget, value, indent=indent), "tojson")


# dbt's filters that convert text: https://docs.getdbt.com/reference/dbt-jinja-functions/as_bool and the pages of the
# others. dbt raises an error for a value of another type. Here the value stays, and the key that gets it validates it.


def _as_bool(value: object) -> object:
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _as_number(value: object) -> object:
    match = NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return value
    return float(match[0]) if match["fraction"] else int(match[0])


def _as_native(value: object) -> object:
    typed = _as_bool(value)
    return _as_number(typed) if typed is value else typed


REPLACED: dict[str, Function] = {
    "format": _format,
    "string": _string,
    "join": _join,
    "replace": _replace,
    "safe": lambda value: value,
    "tojson": _tojson,
    "as_text": _string,
    "as_bool": _as_bool,
    "as_number": _as_number,
    "as_native": _as_native,
}


def bounded_filters(environment: BoundedEnvironment) -> dict[str, Function]:
    """Returns the filters of `environment` by name. Each spends from the current budget."""
    kept = {name: function for name, function in FILTERS.items() if name not in REMOVED} | REPLACED
    return {
        name: function if name in UNTOUCHED else _bounded(environment, name, function)
        for name, function in kept.items()
    }


def bounded_tests(environment: BoundedEnvironment) -> dict[str, Function]:
    """Returns the tests of `environment` by name. Those that compare spend from the current budget."""
    return {
        name: _bounded(environment, f"is {name}", function) if name in COMPARING_TESTS else function
        for name, function in TESTS.items()
    }


def _bounded(environment: BoundedEnvironment, name: str, function: Function) -> Function:
    price = PRICES.get(name)
    is_free, is_slow = name in FREE, name in SLOW

    def run(*args: Any, **named: Any) -> object:
        if is_free:
            environment.budget.spend(1)
            return function(*(environment.plain(value, name) for value in args), **named)
        internal, given = (args[:1], args[1:]) if args and isinstance(args[0], INTERNAL) else ((), args)
        budget = environment.budget
        budget.spend(3)
        given = tuple(environment.operand(value, name) for value in given)
        named = {key: environment.operand(value, name) for key, value in named.items()}
        if is_slow:
            budget.spend(sum(budget.weigh(value) for value in given) // 2)
        if price is not None:
            price(budget, *given, **named)
        return budget.check(function(*internal, *given, **named))

    return update_wrapper(run, function)
