"""Converts values of templates to plain values, as YAML has them."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2.runtime import Undefined

from sqlstream.compiler.render.relation import Relation
from sqlstream.compiler.render.sandbox.problems import TemplateProblem


def plain_value(value: object) -> object:
    """Returns a copy of `value` with texts, numbers, lists and mappings. Other scalars stay unchanged.

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
