"""Pydantic's errors as findings: each at the YAML key or value that it is about, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.dbt_words import MODEL_KEYS
from sqlstream.project.fields import Document
from sqlstream.project.nearest import did_you_mean, nearest
from sqlstream.project.wording import alternatives, given, quoted, quoted_list
from sqlstream.project.yaml import YamlMapping, YamlNode, YamlScalar, follow, locate, plain

D = TypeVar("D", bound=Document)

Path = tuple[str | int, ...]
"""A path of keys and indexes from the root of what is validated."""

JINJA_MARKS = ("{{", "{%", "{#")
"""Text that holds one of these is a template."""


def is_template(value: object) -> bool:
    """Returns whether a value is text with Jinja in it."""
    return isinstance(value, str) and any(mark in value for mark in JINJA_MARKS)


def validate_node(model: type[D], node: YamlMapping, findings: list[Finding]) -> D | None:
    """Returns the validated document, or None where something is wrong, after adding why to `findings`.

    A value that still holds Jinja is not judged: either its rendering has failed, which is a finding already, or it
    belongs to a target that is not in use.
    """
    try:
        return model.model_validate(plain(node))
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            value = follow(node, problem["loc"])
            if not (isinstance(value, YamlScalar) and is_template(value.value)):
                findings.append(to_finding(model, problem, lambda path, key: _locate(node, path, key=key)))
        return None


def to_finding(model: type[Document], problem: ErrorDetails, location_of: Callable[[Path, bool], Location]) -> Finding:
    """Returns the finding for one pydantic error; `location_of(path, of_key)` gives the place of a value or its key."""
    path = problem["loc"]
    place = document_at(model, path[:-1])
    if problem["type"] == "extra_forbidden":
        return _unknown_key(place, path, location_of(path, True))
    if problem["type"] == "missing":
        return _missing_key(place, path, location_of(path[:-1], False))
    return _invalid_value(place, problem, location_of(path, False))


def allowed_keys(model: type[Document]) -> tuple[str, ...]:
    """Returns the keys that a document takes, as YAML spells them."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def document_at(model: type[Document], path: Sequence[str | int]) -> type[Document]:
    """Returns the document class that describes the mapping at `path`, or the nearest one around it."""
    nearest_document: type[Document] = model
    annotation: Any = model
    for part in path:
        annotation = _without_none(_step(annotation, part))
        if isinstance(annotation, type) and issubclass(annotation, Document):
            nearest_document = annotation
    return nearest_document


def _step(annotation: Any, part: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, Document):
        field = _field(annotation, part)
        return field.annotation if field else None
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return arguments[1]
    return arguments[0] if arguments else None


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _without_none(next(part for part in get_args(annotation) if part is not type(None)))
    return annotation


def _field(model: type[Document], key: str | int) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def _locate(node: YamlNode, path: Path, *, key: bool) -> Location:
    parent = follow(node, path[:-1]) if path else None
    entry = parent.entry(path[-1]) if key and isinstance(parent, YamlMapping) else None
    return entry.key_location if entry else locate(node, path)


def _unknown_key(place: type[Document], path: Path, location: Location) -> Finding:
    key, keys = str(path[-1]), allowed_keys(place)
    if any(key.count(closing) > key.count(opening) for opening, closing in ("()", "<>")):
        return _cut_value(place, key, location)
    return Finding(
        "unknown-key",
        f"{quoted(key)} is not a key of {place.called}",
        f"the keys of {place.called} are {quoted_list(keys, most=20)}",
        _fix_of_key(place, key, keys),
        location,
    )


def _fix_of_key(place: type[Document], key: str, keys: Sequence[str]) -> str:
    if not nearest(key, keys) and key in MODEL_KEYS and place.called.startswith("a model's"):
        return MODEL_KEYS[key]
    return did_you_mean(key, keys)


def _cut_value(place: type[Document], key: str, location: Location) -> Finding:
    """The finding for the second half of `{data_type: decimal(10,2)}`, which YAML cuts at the comma."""
    return Finding(
        "unknown-key",
        f"{quoted(key)} is not a key of {place.called}",
        "within { } a comma ends the value before it, so that what follows is read as a key of its own",
        "put the value before it in quotes, all of it: data_type: 'decimal(10,2)'",
        location,
    )


def _missing_key(place: type[Document], path: Path, location: Location) -> Finding:
    key = str(path[-1])
    field = _field(place, key)
    described = field.description if field and field.description else "it has no default"
    return Finding(
        "missing-key",
        f"{place.called} needs the key {quoted(key)}",
        f"{quoted(key)}: {_as_clause(described)}",
        f"add `{key}:` to it",
        location,
    )


def _invalid_value(place: type[Document], problem: ErrorDetails, location: Location) -> Finding:
    path = problem["loc"]
    message, fix = _problem_and_fix(problem)
    key = next((part for part in reversed(path) if isinstance(part, str)), None)
    subject = quoted(key) if key is not None else "the file"
    if path and isinstance(path[-1], int):
        subject = f"entry {path[-1] + 1} of {subject}"
    # the key itself, or the one in whose mapping it stands
    known = ((part, field.description) for part in path[:-3:-1] if (field := _field(place, part)) is not None)
    name, description = next(known, ("", None))
    why = f"{quoted(str(name))}: {_as_clause(description)}" if description else f"it belongs to {place.called}"
    return Finding("invalid-value", f"{subject} {message}", why, fix, location)


def _problem_and_fix(problem: ErrorDetails) -> tuple[str, str]:
    kind, context, value = problem["type"], problem.get("ctx", {}), problem["input"]
    if kind == "sqlstream":
        return str(context["problem"]), str(context["fix"])
    if kind == "literal_error":
        allowed = [part.strip().strip("'") for part in str(context["expected"]).replace(" or ", ",").split(",")]
        return f"cannot be {given(value)}", _nearest_literal(value, allowed)
    for start, wanted, fix in _WANTED:
        if kind.startswith(start):
            return f"must be {wanted}, and is {given(value)}", fix
    return f"cannot be {given(value)}", f"correct the value: {problem['msg'].lower()}"


def _nearest_literal(value: object, allowed: Sequence[str]) -> str:
    close = did_you_mean(str(value), allowed)
    return close if close.startswith("did") else f"write {alternatives(allowed)}"


_WANTED: tuple[tuple[str, str, str], ...] = (
    ("string", "text", "put the value in quotes"),
    ("bool", "true or false", "write `true` or `false`"),
    ("int", "a whole number", "write a whole number"),
    ("list", "a list", "begin each entry with `- `, or write `[a, b]`"),
    ("tuple", "a list", "begin each entry with `- `, or write `[a, b]`"),
    ("dict", "a mapping", "write `key: value` lines below it, or `{key: value}`"),
    ("model", "a mapping", "write `key: value` lines below it, or `{key: value}`"),
)
"""Start of pydantic's error type, what the value must be, and how to write that."""


def _as_clause(sentence: str) -> str:
    """A field's description as part of a line: without its period."""
    return sentence.removesuffix(".")
