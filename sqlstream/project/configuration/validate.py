"""Pydantic's errors as findings: each at the YAML key or value with the error, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.fields import Document
from sqlstream.project.dbt_words import MISPLACED, replacement_for_key, replacement_for_value
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.formats.option_types import BOOLEAN
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type
from sqlstream.project.wording import alternatives, did_you_mean, given, quoted, quoted_list
from sqlstream.project.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, entries_at, follow, locate, plain
from sqlstream.project.yaml.nodes import BOOLEAN_WORDS, JINJA_MARKS

D = TypeVar("D", bound=Document)

Path = tuple[str | int, ...]
"""A path of keys and indexes from the root of the validated node."""

_BOOLEAN_OPTIONS = frozenset(
    name.lower() for known in FORMATS.values() for name, option in known.options.items() if option.takes is BOOLEAN
)


def is_template(value: object) -> bool:
    """Returns whether a value is text with Jinja."""
    return isinstance(value, str) and any(mark in value for mark in JINJA_MARKS)


def boolean_words(node: YamlNode, *paths: tuple[str, ...]) -> Iterator[Finding]:
    """Yields a warning for each word at or below one of `paths` that YAML reads as a boolean, and that may be meant as
    text, such as NO. A part `*` of a path is any key or index. Options that take booleans have none.
    """
    for path in paths:
        for scalar in _below(node, path):
            word = scalar.text
            if isinstance(scalar.value, bool) and word.lower() in BOOLEAN_WORDS:
                value = str(scalar.value).lower()
                yield Finding(
                    "yaml-boolean",
                    f"YAML reads the word {quoted(word)} as {value}",
                    "in YAML 1.1 the words yes, no, on and off are booleans in any letter case",
                    f"put it in quotes if it is text: '{word}'; or write {value}",
                    scalar.location,
                    Severity.WARNING,
                )


def _below(node: YamlNode, path: tuple[str, ...]) -> Iterator[YamlScalar]:
    if isinstance(node, YamlMapping):
        entries = [(entry.key, entry.value) for entry in node.entries]
    elif isinstance(node, YamlSequence):
        entries = [("", item) for item in node.items]
    else:
        entries = []
        if not path:
            yield node
    for key, value in entries:
        if (not path or path[0] in ("*", key)) and key.lower() not in _BOOLEAN_OPTIONS:
            yield from _below(value, path[1:])


def validate_node(
    model: type[D], node: YamlMapping, findings: list[Finding], kept: Collection[tuple[str, ...]] = ()
) -> D | None:
    """Returns the validated document, or None after adding errors to `findings`.

    A value that still contains Jinja is not checked: its rendering has failed, which is another finding, or it belongs
    to an unused target. Jinja at or below the paths `kept` (`*` for any key or index) stays text permanently, so it is
    checked as text.
    """
    try:
        return model.model_validate(plain(node))
    except ValidationError as error:
        problems = error.errors(include_url=False)
    short = {path: fix for path in _unknown_paths(problems) if (fix := _short_column(model, path, node))}
    # `{name:orders}` has the key `name`, without a space after its colon, and `{orders: ...}` has its value
    present = {(*path[:-1], str(path[-1]).partition(":")[0]) for path in _unknown_paths(problems)}
    present |= {(*path[:-1], "name") for path in short}
    for problem in problems:
        path = problem["loc"]
        if (problem["type"] == "missing" and path in present) or _is_unrendered(node, path, kept):
            continue
        found = to_finding(model, problem, lambda at, key: _locate(node, at, key=key))
        findings.append(replace(found, fix=short.get(path, found.fix)))
    return None


def _is_unrendered(node: YamlMapping, path: Path, kept: Collection[tuple[str, ...]]) -> bool:
    """Whether the value at `path` still contains Jinja, and none of the paths `kept` covers it."""
    value = follow(node, path)
    is_kept = any(_covers(kept_path, path) for kept_path in kept)
    return not is_kept and isinstance(value, YamlScalar) and is_template(value.value)


def _unknown_paths(problems: Iterable[ErrorDetails]) -> Iterator[Path]:
    return (problem["loc"] for problem in problems if problem["type"] == "extra_forbidden")


def _covers(path: tuple[str, ...], loc: Path) -> bool:
    """Whether `loc` is the path `path`, or below it."""
    return len(loc) >= len(path) and all(part in ("*", key) for part, key in zip(path, loc, strict=False))


def to_finding(model: type[Document], problem: ErrorDetails, location_of: Callable[[Path, bool], Location]) -> Finding:
    """Returns the finding for one pydantic error. `location_of(path, of_key)` returns the location of a value or its
    key.
    """
    path = problem["loc"]
    place = document_at(model, path[:-1])
    if problem["type"] == "extra_forbidden":
        found = _unknown_key(model, place, path, location_of(path, True))
        return with_dbt_hint(found, place, str(path[-1]))
    if problem["type"] == "missing":
        return _missing_key(place, path, location_of(path[:-1], False), problem["input"])
    context = problem.get("ctx", {})
    part, is_unknown = context.get("part"), bool(context.get("is_unknown"))
    found = _invalid_value(place, problem, location_of((*path, part) if part else path, is_unknown))
    if is_unknown:
        found = replace(found, code="unknown-key")
    hint = replacement_for_value(str(path[-1]), problem["input"]) if path else None
    return found if hint is None else replace(found, fix=hint)


def allowed_keys(model: type[Document]) -> tuple[str, ...]:
    """Returns the keys of a document in the spelling of YAML."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def document_at(model: type[Document], path: Sequence[str | int]) -> type[Document]:
    """Returns the document class for the mapping at `path`, or for the nearest one around it."""
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


def _unknown_key(root: type[Document], place: type[Document], path: Path, location: Location) -> Finding:
    key, keys = str(path[-1]), allowed_keys(place)
    if any(key.count(closing) > key.count(opening) for opening, closing in ("()", "<>")):
        return _cut_value(place, key, location)
    why = f"the keys of {place.called} are {quoted_list(keys, most=20)}"
    fix = _other_level(root, place, path, key) or _split_key(key, keys) or did_you_mean(key, keys)
    return Finding("unknown-key", f"{quoted(key)} is not a key of {place.called}", why, fix, location)


def _other_level(root: type[Document], place: type[Document], path: Path, key: str) -> str | None:
    """The fix for a key that belongs to a parent or child of this place: its indentation is wrong."""
    around = (document_at(root, path[:depth]) for depth in range(len(path) - 1, -1, -1))
    for document in around:
        if document is not place and key in allowed_keys(document):
            return f"move it out: {quoted(key)} is a key of {document.called}, so indent it less"
    for field, held in _held_documents(place):
        if key in allowed_keys(held):
            return f"move it in: {quoted(key)} is a key of {held.called}, so indent it below {quoted(field)}"
    return None


def _held_documents(place: type[Document]) -> Iterator[tuple[str, type[Document]]]:
    for name in allowed_keys(place):
        held = document_at(place, (name, 0))
        if held is not place:
            yield name, held


def _short_column(root: type[Document], path: Path, node: YamlNode) -> str | None:
    """The fix for `id: int` in a list of columns, None if the key at `path` has another form."""
    value = follow(node, path)
    is_alone = len(entries_at(node, path[:-1])) == 1
    if not (is_alone and isinstance(value, YamlScalar) and "data_type" in allowed_keys(document_at(root, path[:-1]))):
        return None
    try:
        parse_type(value.text)
    except TypeSyntaxError:
        return None
    return f"use {{name: {path[-1]}, data_type: {value.text if value.text.isidentifier() else repr(value.text)}}}"


def _split_key(key: str, keys: Sequence[str]) -> str | None:
    """The fix for `{name:orders}`, which YAML reads as one word."""
    first, colon, _ = key.partition(":")
    return _spaced(key) if colon and first in keys else None


def _spaced(key: str) -> str:
    return f"add a space after the colon: {quoted(key.replace(':', ': ', 1))}"


def with_dbt_hint(finding: Finding, place: type[Document], key: str) -> Finding:
    """Returns the finding for an unknown key, with a replacement if it is a key of dbt or of another file."""
    if key in MISPLACED.get(place.called, {}):
        return replace(finding, fix=MISPLACED[place.called][key])
    hint = replacement_for_key(place.called, key)
    return finding if hint is None else replace(finding, why="this is a key of dbt, but not of sqlstream", fix=hint)


def _cut_value(place: type[Document], key: str, location: Location) -> Finding:
    """The finding for the second half of `{data_type: decimal(10,2)}`, which YAML cuts at the comma."""
    return Finding(
        "unknown-key",
        f"{quoted(key)} is not a key of {place.called}",
        "inside { } a comma ends the value before it, so the rest is read as a separate key",
        "put the whole value before it in quotes: data_type: 'decimal(10,2)'",
        location,
    )


def _missing_key(place: type[Document], path: Path, location: Location, given: object) -> Finding:
    key, what = str(path[-1]), place.called
    name = given.get("name") if isinstance(given, Mapping) else None
    article, _, kind = what.partition(" ")
    if isinstance(name, str) and article in ("a", "an"):
        what = f"the {kind} {quoted(name)}"
    field = _field(place, key)
    described = field.description if field and field.description else "it has no default"
    return Finding(
        "missing-key",
        f"{what} needs the key {quoted(key)}",
        f"{quoted(key)}: {_as_clause(described)}",
        f"add `{key}:` to it",
        location,
    )


def _invalid_value(place: type[Document], problem: ErrorDetails, location: Location) -> Finding:
    path = problem["loc"]
    message, fix = _problem_and_fix(problem)
    if problem["type"] == "model_type":
        is_item = isinstance(path[-1], int) if path else False  # the document of an item is that of its list
        keys = [f"{key}: ..." for key in _needed_keys(document_at(place, path[-2:] if is_item else path[-1:]))]
        start = "- " if is_item else f"{path[-1]}: " if path else ""
        fix = f"for example, use `{start}{{{', '.join(keys)}}}`" if keys else fix
    key = next((part for part in reversed(path) if isinstance(part, str)), None)
    if problem["input"] is None and key is not None and ":" in key:
        fix = _spaced(key)
    subject = quoted(key) if key is not None else "the file"
    if path and isinstance(path[-1], int):
        subject = f"entry {path[-1] + 1} of {subject}"
    # the key itself, or the key whose mapping contains it
    known = ((part, field.description) for part in path[:-3:-1] if (field := _field(place, part)) is not None)
    name, description = next(known, ("", None))
    why = f"{quoted(str(name))}: {_as_clause(description)}" if description else f"it belongs to {place.called}"
    return Finding("invalid-value", f"{subject} {message}", why, fix, location)


def _needed_keys(model: type[Document]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items() if field.is_required()]


def _problem_and_fix(problem: ErrorDetails) -> tuple[str, str]:
    kind, context, value = problem["type"], problem.get("ctx", {}), problem["input"]
    if kind == "sqlstream":
        return str(context["problem"]), str(context["fix"])
    if kind == "literal_error":
        allowed = [part.strip().strip("'") for part in str(context["expected"]).replace(" or ", ",").split(",")]
        return f"cannot be {given(value)}", _nearest_literal(value, allowed)
    if kind.startswith(("list", "tuple")) and isinstance(value, dict):
        first = next((key for key, item in value.items() if isinstance(item, dict) or item is None), None)
        fix = "start each entry with `- `, for example `- name: ...`"
        by_name = f"use `- name: {first}` instead of `{first}:`, with its keys below it"
        return "must be a list, but is a mapping", fix if first is None or first == "name" else by_name
    for start, expected, fix in _EXPECTED:
        if kind.startswith(start):
            return f"must be {expected}, but is {given(value)}", fix
    return f"cannot be {given(value)}", f"fix the value: {problem['msg'].lower()}"


def _nearest_literal(value: object, allowed: Sequence[str]) -> str:
    close = did_you_mean(str(value), allowed)
    return close if close.startswith("did") else f"use {alternatives(allowed)}"


_EXPECTED: tuple[tuple[str, str, str], ...] = (
    ("string", "text", "put the value in quotes"),
    ("bool", "true or false", "use `true` or `false`"),
    ("int", "a whole number", "use a whole number"),
    ("list", "a list", "start each entry with `- `, or use `[a, b]`"),
    ("tuple", "a list", "start each entry with `- `, or use `[a, b]`"),
    ("dict", "a mapping", "add `key: value` lines below it, or use `{key: value}`"),
    ("model", "a mapping", "add `key: value` lines below it, or use `{key: value}`"),
)
"""The start of pydantic's error type, the required value, and how to write it."""


def _as_clause(sentence: str) -> str:
    """A field's description as part of a line: without its period."""
    return sentence.removesuffix(".")


class SeenNames:
    """Finds repeated names of one kind. Names that differ only in letter case are equal, because Spark ignores the case
    of views and columns. With `in_spark=False`, for names that Spark never sees, they are different, as in dbt.
    """

    def __init__(self, kind: str, *, in_spark: bool = True) -> None:
        self._kind = kind
        self._in_spark = in_spark
        self._seen: dict[str, tuple[str, Location]] = {}

    def add(self, name: str, location: Location, findings: list[Finding]) -> bool:
        """Returns whether the name is new. Adds a finding with both locations if it is not."""
        first = self._seen.setdefault(name.casefold() if self._in_spark else name, (name, location))
        if first[1] is location:
            return True
        also = "" if first[0] == name else f" as {quoted(first[0])}; names are case-insensitive in Spark"
        findings.append(
            Finding(
                "duplicate-name",
                f"there are two {self._kind} named {quoted(name)}",
                f"the other one is at {first[1].path}:{first[1].line}{also}",
                "rename or remove one of them",
                location,
            )
        )
        return False
