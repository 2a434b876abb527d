"""tojson() and fromjson() within the budget."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from jinja2.runtime import Undefined

from sqlstream.compiler.render.relation import Relation
from sqlstream.compiler.render.sandbox.budget import Budget
from sqlstream.compiler.render.sandbox.problems import TemplateProblem


def to_json(budget: Budget, value: object, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Returns `value` as JSON text. Raises: TemplateProblem if it would be too large."""
    budget.spend(budget.weigh(value) // 4)
    if indent is not None:
        budget.require_size(indent)
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
    """Returns the value of JSON `text`, or `default` (if there is one) if it is not JSON.

    Raises: TemplateProblem.
    """
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
