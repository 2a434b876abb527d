"""What the compiler remembers of each model for the next compilation, and how that is stored.

A model has one entry, a text of rows in JSON, one for each value that has parts. Parts come before the values that
contain them, and the last row is the value itself. A row is the kind of its value, then its parts: an integer is the
index of a row, a list of one contains an actual integer, and everything else is the value itself. An object that occurs
twice is one row, so decoding restores it as one object.

Decoding creates only objects of the classes below. A manipulated file can contain wrong values, but cannot run code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain
from operator import attrgetter
from types import ModuleType, NoneType
from typing import Any

from pydantic_core import from_json, to_json

from sqlstream.compiler.compiled import Output
from sqlstream.compiler.flow import columns
from sqlstream.compiler.flow.analysis import ModelSummary
from sqlstream.compiler.render.rendered import MacroIndex, Reference, RenderedModel, TemplateReads
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.sql.edits import Edit, Rewriting, SqlProblem, ViewReference, Where
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, Place
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.project.types import data_types as types
from sqlstream.project.values import RecordFormat
from sqlstream.project.yaml import Located

NOTHING_READ = TemplateReads()


@dataclass(frozen=True)
class ModelResults:
    """What is known about one model; a part that is not known yet is None.

    `rendering` has the fields of `RenderedModel` after its file, and `places` locations in its SQL. Both depend only on
    what `template` is a digest of: the template, and everything that it has read. The other parts depend on that, and
    on everything else that `key` is a digest of: the inputs, with all that is upstream, and for a terminal model its
    configuration, its sinks, what their templates have read (`sink_reads`), and the target. The answer of Spark's
    parser (`refusals`) depends only on what it was asked (`question`), because asking starts Java.
    """

    template: str = ""
    rendering: tuple[Any, ...] | None = None
    places: Mapping[int, Place] = field(default_factory=dict)
    key: str = ""
    sink_reads: TemplateReads = NOTHING_READ
    rewriting: Rewriting | None = None
    outputs: tuple[Output, ...] | None = None
    summary: ModelSummary | None = None
    problems: tuple[QueryProblem, ...] | None = None
    question: str = ""
    refusals: tuple[SqlProblem, ...] | None = None


@dataclass
class CachedModel:
    """A rendered model with what is known about it, now or from an earlier compilation. The stages of the compiler
    take from `results` what is there, and note the rest.
    """

    model: RenderedModel
    results: ModelResults
    is_changed: bool = False

    def note(self, **parts: Any) -> None:
        """Adds parts to the results."""
        self.results = replace(self.results, **parts)
        self.is_changed = True

    def require(self, key: str) -> None:
        """Forgets the parts that depend on the key, unless that is `key`."""
        if self.results.key != key:
            known = self.results
            self.results = ModelResults(
                known.template, known.rendering, known.places, key, question=known.question, refusals=known.refusals
            )
            self.is_changed = True


class Memory:
    """The entries of earlier compilations (`saved`) and the changed ones of this one (`new`): texts by name."""

    def __init__(self, saved: Mapping[str, str] | None = None) -> None:
        self._saved = saved or {}
        self.new: dict[str, str] = {}

    def recall(self, name: str) -> Any:
        """Returns the value of an entry, None if there is none. The caller checks that it is not stale."""
        text = self.new.get(name) or self._saved.get(name)
        try:
            return None if text is None else decode(text)
        except CodecError:
            return None

    def note(self, name: str, value: object) -> None:
        """Stores `value`, unless its type cannot be encoded."""
        try:
            self.new[name] = encode(value)
        except CodecError:
            self.new.pop(name, None)


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
    *(ModelResults, ModelSummary, SqlProblem, Where, Rewriting, QueryProblem),
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
