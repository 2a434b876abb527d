"""A function that templates can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class TemplateFunction:
    """Wraps a Python function so that templates can only call it.

    `passes_marks`: the function only passes its arguments on, so marked text stays marked.
    """

    def __init__(self, name: str, function: Callable[..., Any], *, passes_marks: bool = False) -> None:
        self.name = name
        self._passes_marks = passes_marks
        self._function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Returns the result of the function."""
        return self._function(*args, **named)

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def passes_marks(function: TemplateFunction) -> bool:
    """Returns whether a function only passes its arguments on. It is no attribute, because templates would see it."""
    return function._passes_marks  # noqa: SLF001 - see above
