"""The methods of plain values that templates can call. The cost of each is known before the call."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sized
from types import BuiltinMethodType
from typing import Any

from sqlstream.compiler.render.sandbox.budget import Budget
from sqlstream.compiler.render.sandbox.operators import require_time_format
from sqlstream.compiler.render.sandbox.problems import unsafe_use

QUADRATIC_TEXT = 30_000
"""Texts of fewer characters: CPython may search them in quadratic time (stringlib/fastsearch.h), longer ones in linear
time.
"""

Price = Callable[..., object]
"""Takes (budget, owner, *arguments) of a method. Spends its cost, or refuses the call."""


def price_replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> None:
    """Checks the size of `text.replace(old, new, count)`."""
    _search(budget, text, old)
    found = text.count(old) if count < 0 else min(text.count(old), count)
    budget.require_size(len(text) + found * max(len(new) - len(old), 0))


def price_join(budget: Budget, separator: str, parts: Iterable[object]) -> None:
    """Checks the size of `separator.join(parts)`."""
    weight = budget.weigh(parts)
    count = len(parts) if isinstance(parts, Sized) else weight
    budget.require_size(weight + len(separator) * count)


def _translate(budget: Budget, text: str, table: Mapping[object, object]) -> None:
    longest = max((len(value) for value in table.values() if isinstance(value, str)), default=1)
    budget.require_size(len(text) * max(longest, 1))


def _search(budget: Budget, text: str, *arguments: object) -> None:
    if len(text) < QUADRATIC_TEXT:
        price_product(budget, text, *arguments)


def price_product(budget: Budget, text: str, *arguments: object) -> None:
    """Spends for a search that may compare every character of `text` with every character of the first argument."""
    searched = arguments[0] if arguments else None
    if isinstance(searched, str):
        budget.spend(len(text) * len(searched) // 1024)


def _grow(budget: Budget, items: list[object], more: Iterable[object]) -> None:
    budget.require_size(len(items) + (len(more) if isinstance(more, Sized) else 0))


def _sort(budget: Budget, items: list[object], **options: object) -> None:
    if options.get("key") is not None:
        raise unsafe_use("the key of list.sort()")
    budget.weigh(items)


def _time(budget: Budget, _owner: object, text: str) -> None:
    budget.spend_text(len(text))
    require_time_format(text)


def _tabs(budget: Budget, text: str, tabsize: int = 8) -> None:
    budget.require_size(len(text) + text.count("\t") * max(tabsize, 0))


def _all(names: str, price: Price = lambda *_arguments, **_options: None) -> dict[str, Price]:
    """The methods with a price. Without one, a method costs only what call_method() spends."""
    return dict.fromkeys(names.split(), price)


def _compare(budget: Budget, items: object, *_arguments: object) -> None:
    budget.weigh(items)


def _copy(budget: Budget, items: Any, *_arguments: object) -> None:
    budget.spend(len(items))


def _shift(budget: Budget, items: list[object], *_arguments: object) -> None:
    budget.spend(len(items) // 64)


def _width(budget: Budget, text: str, width: int = 0, _fill: str = " ") -> None:
    budget.require_size(max(len(text), width))


DATE: dict[str, Price] = _all("isoformat isoweekday weekday replace toordinal ctime") | {"strftime": _time}

METHODS: dict[type, dict[str, Price]] = {
    str: _all("capitalize casefold endswith lower removeprefix removesuffix splitlines startswith swapcase title upper")
    | _all(
        "isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper"
    )
    | _all("center ljust rjust zfill", _width)
    | _all("count find index partition split", _search)
    | _all("rfind rindex rpartition rsplit strip lstrip rstrip", price_product)
    | {"expandtabs": _tabs, "replace": price_replace, "join": price_join, "translate": _translate},
    list: _all("append clear")
    | _all("count index remove", _compare)
    | {"insert": _shift, "pop": _shift, "reverse": _copy, "copy": _copy, "extend": _grow, "sort": _sort},
    tuple: _all("count index", _compare),
    dict: _all("clear get items keys pop popitem setdefault update values") | {"copy": _copy},
    range: _all("count index"),
    int: _all("bit_length bit_count is_integer"),
    float: _all("is_integer"),
    dt.date: DATE,
    dt.datetime: DATE | _all("date time timestamp astimezone utcoffset"),
    dt.time: _all("isoformat replace") | {"strftime": _time},
    dt.timedelta: _all("total_seconds"),
}
"""The methods of each type that templates can call. All of them return values that templates can use."""


def call_method(budget: Budget, method: object, args: tuple[Any, ...], named: dict[str, Any]) -> object:
    """Returns the result of `method`, bound to a plain value. Raises: TemplateProblem unless it is in `METHODS`."""
    owner = getattr(method, "__self__", None)
    name = getattr(method, "__name__", "")
    price = METHODS.get(type(owner), {}).get(name) if isinstance(method, BuiltinMethodType) else None
    if price is None:
        raise unsafe_use(f"calling {_described(method, owner, name)}")
    if isinstance(owner, str):
        budget.weigh(owner)
    for argument in (*args, *named.values()):
        budget.weigh(argument)
    price(budget, owner, *args, **named)
    return budget.check(method(*args, **named))  # type: ignore[operator] # a BuiltinMethodType, as checked above


def _described(method: object, owner: object, name: str) -> str:
    """The name of what the user called, without Python internals."""
    if isinstance(method, BuiltinMethodType):
        return f"`{name}` of a value of type {type(owner).__name__}"
    return f"a value of type {type(method).__name__}"
