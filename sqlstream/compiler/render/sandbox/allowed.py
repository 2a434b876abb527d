"""The allow-lists: what templates can use besides their own values and the functions of sqlstream.

These are relations, functions, JSON, the methods of plain values, and Jinja's filters and tests without those that SQL
does not need.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from types import BuiltinMethodType
from typing import Any, Protocol

from jinja2.environment import Environment
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Undefined
from jinja2.tests import TESTS
from jinja2.utils import pass_environment

from sqlstream.compiler.render.sandbox.bounds import Budget, apply_operator, replaced_size, time_format_size
from sqlstream.compiler.render.sandbox.render_errors import TemplateProblem, unsafe_use
from sqlstream.compiler.sql.sql_text import quote_identifier

# values


@dataclass(frozen=True)
class Relation:
    """A temp view: the value of ref(), source() and this. Its text is the view's name, quoted if Spark needs it.
    `identifier` and `name` are the bare name, as in dbt.
    """

    identifier: str

    @property
    def name(self) -> str:
        """The view's name, unquoted."""
        return self.identifier

    def __str__(self) -> str:
        return quote_identifier(self.identifier)

    __repr__ = __str__


class TemplateFunction:
    """Wraps a Python function so that templates can only call it."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Returns the result of the function."""
        return self._function(*args, **named)

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def plain_value(value: object) -> object:
    """Returns a copy of `value` with texts, numbers, lists and mappings, as in YAML. Other scalars stay unchanged.

    Raises: UndefinedUse for an undefined value, TemplateProblem for a function.
    """
    if isinstance(value, Relation | Undefined):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [plain_value(item) for item in value]
    if callable(value):
        raise TemplateProblem(
            "jinja-failed",
            "a function is used as a value",
            "a function returns a value only when it is called",
            "add parentheses with its arguments",
        )
    return value


def to_json(budget: Budget, value: object, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Returns `value` as JSON text. Raises: TemplateProblem if it would be too large."""
    budget.weigh(value)
    budget.require_size(indent or 0)
    parts: list[str] = []
    size = 0
    encoder = json.JSONEncoder(indent=indent, sort_keys=sort_keys, default=_plain_json, ensure_ascii=False)
    # In parts, so that a text that grows too large is stopped while it is made.
    for part in encoder.iterencode(value):
        size += len(part)
        budget.require_size(size)
        parts.append(part)
    return "".join(parts)


def _plain_json(value: object) -> object:
    if isinstance(value, Relation | Undefined):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def from_json(budget: Budget, text: str, default: Any = None) -> object:
    """Returns the value of JSON `text`, or `default` if it is not JSON. Raises: TemplateProblem without a default."""
    budget.weigh(text)
    try:
        value = json.loads(text)
    except ValueError as error:
        if default is not None:
            return default
        raise TemplateProblem(
            "jinja-failed",
            "the argument of fromjson() is not valid JSON",
            f"{error}",
            "fix the text, or add a default: fromjson(text, {})",
        ) from error
    budget.weigh(value)
    return value


# methods

SEARCHED = "count find index partition split replace strip lstrip rstrip rfind rindex rpartition rsplit"
TESTED = "isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper"
DATE = "isoformat isoweekday weekday replace toordinal ctime strftime"

METHODS: dict[type, tuple[str, ...]] = {
    kind: tuple(names.split())
    for kind, names in {
        str: "capitalize casefold endswith lower removeprefix removesuffix splitlines startswith swapcase title upper "
        f"center ljust rjust zfill expandtabs join translate {SEARCHED} {TESTED}",
        list: "append clear count index remove insert pop reverse copy extend sort",
        tuple: "count index",
        dict: "clear copy get items keys pop popitem setdefault update values",
        range: "count index",
        int: "bit_length bit_count is_integer",
        float: "is_integer",
        dt.date: DATE,
        dt.datetime: f"{DATE} date time timestamp astimezone utcoffset",
        dt.time: "isoformat replace strftime",
        dt.timedelta: "total_seconds",
    }.items()
}
"""The methods of each type that templates can call. All of them return values that templates can use."""

VISITING = frozenset({"count", "index", "remove", "sort", "copy", "reverse"})
"""Methods of collections that look at every item."""


def call_method(budget: Budget, method: object, args: tuple[Any, ...], named: dict[str, Any]) -> object:
    """Returns the result of `method`, bound to a plain value. Raises: TemplateProblem unless it is in `METHODS`."""
    owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    # The methods of plain values are written in C. Any other method is code of Python.
    if not isinstance(method, BuiltinMethodType) or name not in METHODS.get(type(owner), ()):
        raise unsafe_use(f"calling {_described(method, owner, name)}")
    # Python would call the key without `call_at`, which bounds each call of a template.
    if name == "sort" and named.get("key") is not None:
        raise unsafe_use("the key of list.sort()")
    given = (*args, *named.values())
    for argument in given:
        budget.weigh(argument)
    if isinstance(owner, str):
        budget.weigh(owner)
        _require_text_method(budget, name, owner, given)
    elif name in VISITING:
        budget.weigh(owner)
    elif name in ("insert", "pop") and isinstance(owner, list):
        budget.spend(len(owner) // 64)  # the items behind it move
    elif name == "strftime":
        budget.require_size(time_format_size(*given))
    return budget.check(method(*args, **named))


def _require_text_method(budget: Budget, name: str, owner: str, given: tuple[Any, ...]) -> None:
    if name in SEARCHED.split() and given:
        budget.spend_search(owner, given[0])
    if name == "replace" and len(given) > 1:
        budget.require_size(replaced_size(owner, *given))
    if name == "join":
        budget.joined(owner, *given)
    budget.require_growth(name, owner, *given)


def _described(method: object, owner: object, name: str) -> str:
    """The name of what the user called, without Python internals."""
    if isinstance(method, BuiltinMethodType):
        return f"`{name}` of a value of type {type(owner).__name__}"
    return f"a value of type {type(method).__name__}"


# filters and tests


class Bounded(Protocol):
    """What filters need of the environment."""

    @property
    def budget(self) -> Budget:
        """The budget of the current rendering."""

    def text(self, value: object) -> str:
        """Returns `value` as text of limited size."""

    def plain(self, value: Any, operation: str = "") -> Any:
        """Returns the value for `operation`, without marks that it would read."""

    def operand(self, value: Any, operation: str = "") -> Any:
        """Returns the value for `operation` as `plain` does, and measures it."""


Function = Any
"""A filter or a test. Jinja and Python do not check the arguments."""

REMOVED = frozenset(
    {"escape", "e", "forceescape", "pprint", "random", "striptags", "urlize", "xmlattr", "filesizeformat"}
)
"""Filters for web pages, and `random`: two compilations of the same project must produce the same SQL."""

FREE = frozenset({"length", "count", "first", "last"})
"""Filters whose work does not grow with their input."""

UNTOUCHED = frozenset({"default", "d", "safe"})
"""Filters that return their input, or their argument, unchanged."""

COMPARING_TESTS = frozenset(
    {"eq", "==", "equalto", "ne", "!=", "lt", "<", "lessthan", "le", "<=", "gt", ">", "greaterthan", "ge", ">=", "in"}
    | {"upper", "lower"}
)
"""Tests that look into their values."""

INTERNAL = (Context, EvalContext, Environment)
NUMBER = re.compile(r"[+-]?\d+(?P<fraction>\.\d+)?", re.ASCII)


@pass_environment
def _format(environment: Bounded, value: object, *args: object, **named: object) -> object:
    return apply_operator(environment.budget, "%", environment.text(value), named or args)


@pass_environment
def _string(environment: Bounded, value: object) -> str:
    return environment.text(value)


@pass_environment
def _trim(environment: Bounded, value: object, chars: str | None = None) -> str:
    text = environment.text(value)
    environment.budget.spend_search(text, chars)
    return text.strip(chars)


@pass_environment
def _replace(environment: Bounded, value: object, old: object, new: object, count: int | None = None) -> str:
    text, old_text, new_text = environment.text(value), environment.text(old), environment.text(new)
    times = -1 if count is None else count
    environment.budget.spend_search(text, old_text)
    environment.budget.require_size(replaced_size(text, old_text, new_text, times))
    return text.replace(old_text, new_text, times)


@pass_environment
def _join(environment: Bounded, value: Any, d: object = "", attribute: Any = None) -> str:
    get = make_attrgetter(environment, attribute)  # type: ignore[arg-type] # the environment of Jinja
    parts = list(value) if attribute is None else [get(part) for part in value]
    separator = environment.text(d)
    environment.budget.joined(separator, parts)
    return separator.join(environment.text(part) for part in parts)


@pass_environment
def _tojson(environment: Bounded, value: object, indent: int | None = None) -> object:
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
    "trim": _trim,
    "replace": _replace,
    "safe": lambda value: value,
    "tojson": _tojson,
    "as_text": _string,
    "as_bool": _as_bool,
    "as_number": _as_number,
    "as_native": _as_native,
}
"""Filters of Jinja that would make text without bounds, or mark it for HTML, and dbt's filters."""


def bounded_filters(environment: Bounded) -> dict[str, Function]:
    """Returns the filters of `environment` by name. Each spends from the current budget."""
    kept = {name: function for name, function in FILTERS.items() if name not in REMOVED} | REPLACED
    return {
        name: function if name in UNTOUCHED else _bounded(environment, name, function)
        for name, function in kept.items()
    }


def bounded_tests(environment: Bounded) -> dict[str, Function]:
    """Returns the tests of `environment` by name. Those that compare spend from the current budget."""
    return {
        name: _bounded(environment, f"is {name}", function) if name in COMPARING_TESTS else function
        for name, function in TESTS.items()
    }


def _bounded(environment: Bounded, name: str, function: Function) -> Function:
    take = environment.plain if name in FREE else environment.operand

    def run(*args: Any, **named: Any) -> object:
        budget = environment.budget
        internal, given = (args[:1], args[1:]) if args and isinstance(args[0], INTERNAL) else ((), args)
        left = budget.left
        given = tuple(take(value, name) for value in given)
        named = {key: take(value, name) for key, value in named.items()}
        budget.spend(1 + left - budget.left)  # a second time: most filters are Python code
        budget.require_growth(name, *given, *named.values())
        result = function(*internal, *given, **named)
        return result if name in FREE else budget.check(result)

    return update_wrapper(run, function)
