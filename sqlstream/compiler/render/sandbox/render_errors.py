"""Errors that rendering raises internally, before their location is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from jinja2.runtime import StrictUndefined
from jinja2.utils import missing


@dataclass(eq=False)
class TemplateProblem(Exception):  # noqa: N818 - a signal inside this package: users see the finding made from it
    """A finding without its location, raised while a template is read or runs.

    `offset` (0-based, in characters of the template) is set if the location is not that of the running call.
    """

    code: str
    message: str
    why: str
    fix: str
    offset: int | None = None


class UndefinedUse(Exception):  # noqa: N818 - as above
    """A template used something undefined: `name` of `owner`, or the bare `name` if `owner` is None."""

    def __init__(self, message: str, name: object, owner: object | None) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner


class LocatedUndefined(StrictUndefined):
    """An undefined value that knows its name and owner when it is used."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = missing, name: str | None = None, _exc: Any = None) -> None:
        super().__init__(hint, obj, name)
        owner = None if obj is missing else obj
        # Jinja calls it with a message, and raises the result
        self._undefined_exception = partial(UndefinedUse, name=name, owner=owner)  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Raises: UndefinedUse, because the text of a list with it would not be SQL."""
        return str(self)


class MacroReturn(Exception):  # noqa: N818 - as above
    """Carries the value of return() out of a macro's body, through any blocks."""

    def __init__(self, value: object) -> None:
        super().__init__("return() outside a macro")
        self.value = value


def unsafe_use(what: str) -> TemplateProblem:
    """Returns the problem of a template that uses `what`, which is not available in templates."""
    return TemplateProblem(
        "jinja-unsafe",
        f"{what} is not available in templates",
        "templates can use their values, common methods of these and the functions of sqlstream, but no Python "
        "internals",
        "remove it; compute the value in SQL, or pass it with --vars",
    )
