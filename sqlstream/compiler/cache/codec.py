"""Frozen values as JSON text and back, for what is kept between two compilations.

The text is a list of rows, one for each value that has parts, parts before wholes; the last row is the value itself. A
row begins with the kind of its value and goes on with its parts: a whole number is the index of a row, a true number
stands in a list of its own, all else stands for itself. A value that is there twice is one row, so that what was one
object is one object again.

Reading makes nothing but values of the classes below: a file that somebody else has written can hold wrong values, and
cannot run anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from operator import attrgetter
from types import ModuleType, NoneType
from typing import Any

from pydantic_core import from_json, to_json

from sqlstream.compiler.compiled import Output, Read
from sqlstream.compiler.flow import columns, nodes, summary
from sqlstream.compiler.render.values import MacroIndex, Reads, Reference
from sqlstream.compiler.rewrite.values import Rewriting
from sqlstream.compiler.rules.query import QueryProblem
from sqlstream.compiler.sql.edits import Edit
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, Place
from sqlstream.project.secrets import SecretName, SecretText
from sqlstream.project.types import types
from sqlstream.project.values import Located

ELSEWHERE = "@"
"""The kind of a row that names a value which is kept elsewhere."""


class CodecError(ValueError):
    """A value cannot be written, or a text cannot be read."""


def _classes(*modules: ModuleType) -> dict[str, type]:
    """The dataclasses that `modules` define, by name."""
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    }


_SINGLE = (
    *(Location, Place, Located, SecretName, SecretText, Finding, Reference, MacroIndex, Reads, Edit, Output, Read),
    *(SqlProblem, Rewriting, QueryProblem),
)
_CLASSES: Mapping[str, type] = {
    **_classes(columns, summary, nodes, types),
    **{kind.__name__: kind for kind in _SINGLE},
}
_FIELDS = {name: tuple(field.name for field in fields(kind)) for name, kind in _CLASSES.items()}
_PLAIN = frozenset({str, bool, float, NoneType})
"""The types of values that stand for themselves in a row."""


def _maker(kind: type) -> Callable[[list[Any]], object]:
    """What makes an object as its constructor would, but faster: none of the classes does more than keep its fields."""
    names, new = _FIELDS[kind.__name__], object.__new__

    def make(parts: list[Any]) -> object:
        made: object = new(kind)
        made.__dict__.update(zip(names, parts, strict=True))
        return made

    return make


_MAKERS: Mapping[str, Callable[[list[Any]], object]] = {
    **{name: _maker(kind) for name, kind in _CLASSES.items()},
    "tuple": tuple,
    "list": list,
    "frozenset": frozenset,
    "dict": lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "severity": lambda parts: Severity(parts[0]),
    "last": lambda parts: parts[0],
}
"""What makes a value of its parts, by the kind of its row."""


Form = tuple[str, Callable[[Any], Iterable[Any]]]
"""The kind of a row, as it is written, and what takes a value of it apart."""


def _taking(names: Sequence[str]) -> Callable[[object], Sequence[object]]:
    """What gives the fields called `names` of an object."""
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


_FORMS: Mapping[type, Form] = {
    **{kind: (name, _taking(_FIELDS[name])) for name, kind in _CLASSES.items()},
    **{kind: (kind.__name__, iter) for kind in (tuple, list, frozenset)},
    dict: ("dict", lambda value: chain.from_iterable(value.items())),
    Severity: ("severity", lambda value: (str(value),)),
}


def encode(value: object, elsewhere: Mapping[int, str] | None = None) -> str:
    """Returns `value` as text. Objects whose id is in `elsewhere` are written as the name that it has there.

    Raises: CodecError for what has no place in the text.
    """
    writer = _Writer(elsewhere or {})
    try:
        last = writer.part(value)
        return to_json([*writer.rows, ["last", last]]).decode()
    except (RecursionError, ValueError) as error:
        raise CodecError(str(error)) from error


def decode(text: str, find: Callable[[str], object] | None = None) -> Any:
    """Returns the value that `encode` has written; `find` gives what is kept elsewhere by its name.

    Raises: CodecError for any other text.
    """
    makers = _MAKERS if find is None else {**_MAKERS, ELSEWHERE: lambda parts: find(parts[0])}
    done: list[Any] = []
    try:
        for kind, *row in from_json(text):
            done.append(makers[kind]([done[i] if type(i) is int else i[0] if type(i) is list else i for i in row]))
        return done[-1]
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise CodecError(str(error)) from error


class _Writer:
    """The rows so far, and the index of each object that has one."""

    def __init__(self, elsewhere: Mapping[int, str]) -> None:
        self.rows: list[list[Any]] = []
        self._elsewhere = elsewhere
        self._written: dict[int, int] = {}
        self._alive: list[object] = []

    def part(self, value: Any) -> Any:
        """Returns what stands for `value` in a row, after writing rows for it where it needs them."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            return [value]
        written = self._written
        index = written.get(id(value))
        if index is None:
            name, take = (ELSEWHERE, self._name) if id(value) in self._elsewhere else _form(kind)
            row: list[Any] = [name]
            for item in take(value):  # most are plain, or have a row
                known = item if type(item) in _PLAIN else written.get(id(item))
                row.append(self.part(item) if known is None and item is not None else known)
            index = written[id(value)] = len(self.rows)
            self.rows.append(row)
            self._alive.append(value)  # an object that is gone would leave its id to another one
        return index

    def _name(self, value: object) -> tuple[str]:
        return (self._elsewhere[id(value)],)


def _form(kind: type) -> Form:
    form = _FORMS.get(kind)
    if form is None:
        raise CodecError(f"a value of type {kind.__name__} cannot be kept")
    return form
