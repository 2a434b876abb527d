"""Results of earlier compilations, and how they are stored: entries by kind and name, each with a key and a text.

The key is a digest of everything that the result depends on. The text is a list of rows in JSON, one for each value
that has parts. Parts come before the values that contain them, and the last row is the value itself. A row is the kind
of its value, then its parts: an integer is the index of a row, a list of one contains an actual integer, and everything
else is the value itself. An object that occurs twice is one row, so decoding restores it as one object.

Decoding creates only objects of the classes below. A manipulated file can contain wrong values, but cannot run code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from operator import attrgetter
from types import ModuleType, NoneType
from typing import Any, TypeVar, cast

from pydantic_core import from_json, to_json

from sqlstream.compiler.compiled import Output
from sqlstream.compiler.flow import columns
from sqlstream.compiler.flow.nodes import ModelSummary
from sqlstream.compiler.graph import ViewReference
from sqlstream.compiler.render.values import MacroIndex, Reference, TemplateReads
from sqlstream.compiler.rewrite.sql import Rewriting
from sqlstream.compiler.rules.query import QueryProblem
from sqlstream.compiler.sql.edits import Edit, SqlProblem, Where
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, Place
from sqlstream.project.secrets import SecretName, SecretText
from sqlstream.project.types import types
from sqlstream.project.values import RecordFormat
from sqlstream.project.yaml import Located

T = TypeVar("T")

Entries = dict[tuple[str, str], tuple[str, str]]
"""The key and text of each entry, by kind and name."""


class Memory:
    """The entries of earlier compilations (`saved`) and of this one (`new`).

    Callers look an entry up with the key that it must have, so they never get a stale one.
    """

    def __init__(self, saved: Mapping[tuple[str, str], tuple[str, str]] | None = None) -> None:
        self._saved = saved or {}
        self.new: Entries = {}

    def recall(self, kind: str, name: str, key: str) -> Any:
        """Returns the value with that key, or None."""
        entry = self.new.get((kind, name)) or self._saved.get((kind, name))
        if entry is None or entry[0] != key:
            return None
        try:
            return decode(entry[1])
        except CodecError:
            return None

    def note(self, kind: str, name: str, key: str, value: object) -> None:
        """Stores `value`, unless its type cannot be encoded."""
        try:
            self.new[kind, name] = (key, encode(value))
        except CodecError:
            self.new.pop((kind, name), None)

    def remember(self, kind: str, name: str, key: str, make: Callable[[], T]) -> T:
        """Returns the value with that key. If there is none, calls `make` and stores its result."""
        found = self.recall(kind, name, key)
        if found is None:
            found = make()
            self.note(kind, name, key, found)
        return cast("T", found)


class CodecError(ValueError):
    """A value cannot be encoded, or a text cannot be decoded."""


def _dataclasses(*modules: ModuleType) -> list[type]:
    """Returns the dataclasses that `modules` define."""
    kinds = [(kind, module.__name__) for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return [kind for kind, module in kinds if is_dataclass(kind) and kind.__module__ == module]


_CACHED = (
    *_dataclasses(columns, types),
    *(
        Location,
        Place,
        Located,
        SecretName,
        SecretText,
        Finding,
        Reference,
        MacroIndex,
        TemplateReads,
        Edit,
        Output,
        RecordFormat,
        ViewReference,
    ),
    *(ModelSummary, SqlProblem, Where, Rewriting, QueryProblem),
)
_CLASSES: Mapping[str, type] = {kind.__name__: kind for kind in _CACHED}
_FIELDS = {name: tuple(field.name for field in fields(kind)) for name, kind in _CLASSES.items()}
_PLAIN = frozenset({str, bool, float, NoneType})
"""The types that JSON stores directly."""


def _maker(kind: type) -> Callable[[list[Any]], object]:
    """Returns a faster replacement for the constructor of `kind`, which only sets fields."""
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
"""Functions that make a value from its parts, by the kind of its row."""


def _splitter(names: Sequence[str]) -> Callable[[object], Sequence[object]]:
    """Returns a function that returns the values of the fields `names`."""
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


_SPLITTERS: Mapping[type, tuple[str, Callable[[Any], Iterable[Any]]]] = {
    **{kind: (name, _splitter(_FIELDS[name])) for name, kind in _CLASSES.items()},
    **{kind: (kind.__name__, iter) for kind in (tuple, list, frozenset)},
    dict: ("dict", lambda value: chain.from_iterable(value.items())),
    Severity: ("severity", lambda value: (str(value),)),
}
"""The kind of the row for a type, and the function that splits a value into its parts."""


def encode(value: object) -> str:
    """Returns `value` as text. Raises: CodecError for types that are not listed above."""
    writer = _Writer()
    try:
        last = writer.part(value)
        return to_json([*writer.rows, ["last", last]]).decode()
    except (KeyError, RecursionError, ValueError) as error:
        raise CodecError(str(error)) from error


def decode(text: str) -> Any:
    """Returns the value that `encode` was given. Raises: CodecError for texts that `encode` cannot have written."""
    done: list[Any] = []
    try:
        for kind, *row in from_json(text):
            done.append(_MAKERS[kind]([done[i] if type(i) is int else i[0] if type(i) is list else i for i in row]))
        return done[-1]
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise CodecError(str(error)) from error


class _Writer:
    """The rows so far, and the index of the row of each object."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._written: dict[int, int] = {}
        self._alive: list[object] = []

    def part(self, value: Any) -> Any:
        """Returns `value` as it appears in a row, after writing the rows that it needs."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            return [value]
        written = self._written
        index = written.get(id(value))
        if index is None:
            name, split = _SPLITTERS[kind]
            row: list[Any] = [name]
            for item in split(value):  # most are plain, or have a row
                known = item if type(item) in _PLAIN else written.get(id(item))
                row.append(self.part(item) if known is None and item is not None else known)
            index = written[id(value)] = len(self.rows)
            self.rows.append(row)
            self._alive.append(value)  # otherwise Python could reuse its id
        return index
