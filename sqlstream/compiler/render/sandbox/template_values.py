"""Relations and functions, which only templates have, and the conversion of all values to plain ones and JSON."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2.runtime import Undefined

from sqlstream.compiler.render.sandbox.budget import Budget
from sqlstream.compiler.render.sandbox.problems import TemplateProblem
from sqlstream.compiler.sql.names import quote_identifier


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
    budget.spend(budget.weigh(value) // 4)
    budget.require_size(indent or 0)
    parts: list[str] = []
    size = 0
    encoder = json.JSONEncoder(indent=indent, sort_keys=sort_keys, default=_plain_json, ensure_ascii=False)
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
    budget.spend(budget.weigh(text) // 4)
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
