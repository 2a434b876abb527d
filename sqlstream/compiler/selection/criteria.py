"""Selections: criteria such as `2+tag:core+1`, and their unions, intersections and differences.

The grammar is dbt's (dbt/graph/selector_spec.py of dbt-core 1.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstream.location import Location

_CRITERION = re.compile(
    r"\A(?P<at>@)?"
    r"(?P<parents>(?P<parents_depth>\d*)\+)?"
    r"(?:(?P<method>[\w.]+):)?"
    r"(?P<value>.*?)"
    r"(?P<children>\+(?P<children_depth>\d*))?\Z"
)
_FILE_ENDINGS = (".sql", ".py", ".csv")


class SelectorError(ValueError):
    """A criterion that is wrong in every project: an unknown method, or a value that its method does not accept.

    `criterion` is the text as given, `problem` describes the error in one line, and `nearest` are likely corrections,
    best first.
    """

    def __init__(self, criterion: str, problem: str, nearest: Sequence[str] = ()) -> None:
        self.criterion = criterion
        self.problem = problem
        self.nearest = tuple(nearest)
        super().__init__(f"`{criterion}`: {problem}")


@dataclass(frozen=True)
class Operators:
    """The graph operators around a criterion. A depth is a number of edges; None is any number.

    `childrens_parents` is the `@` prefix: all children, and everything that they need.
    """

    parents_depth: int | None = 0
    children_depth: int | None = 0
    childrens_parents: bool = False


@dataclass(frozen=True)
class Criterion:
    """One criterion: the nodes that `method` finds for `value`, and the graph operators around them.

    `raw` is the text as given. `arguments` are the words after the method's first dot (`config.meta.owner` has
    `("meta", "owner")`). `explicit`: the text names the method. `location` is the location in selectors.yml, None for
    a criterion of the command line.
    """

    raw: str
    method: str
    arguments: tuple[str, ...]
    value: str
    explicit: bool
    operators: Operators
    location: Location | None = None

    @property
    def full_method(self) -> str:
        """The method with its arguments, as written before the colon."""
        return ".".join((self.method, *self.arguments))


@dataclass(frozen=True)
class Union:
    """The nodes of any part; no nodes without parts."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True)
class Intersection:
    """The nodes that are in all parts."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True)
class Difference:
    """The nodes of `base` that are not in `removed`."""

    base: Selection
    removed: Selection


Selection = Criterion | Union | Intersection | Difference


def split_union(selectors: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields the parts between commas of each word between spaces: `selectors` is the union of these intersections.

    Spaces at an end, or two in a row, add no word. A comma at an end adds an empty part.
    """
    return (tuple(word.split(",")) for selector in selectors for word in selector.split(" ") if word)


def parse_criterion(raw: str) -> Criterion:
    """Returns the criterion in the text `raw`, without looking up its method.

    Raises: SelectorError if it has both `@` and a trailing `+`, which contradict each other.
    """
    match = _CRITERION.match(raw)
    if match is None:
        raise SelectorError(raw, "a selector is one line")
    operators = Operators(
        _depth(match["parents"], match["parents_depth"]),
        _depth(match["children"], match["children_depth"]),
        match["at"] is not None,
    )
    method = match["method"] or default_method(match["value"])
    return _checked(raw, method, match["value"], operators, explicit=match["method"] is not None)


def build_criterion(method: str, value: str, location: Location, operators: Operators) -> Criterion:
    """Returns the criterion of a method and a value, which can contain any characters.

    Raises: SelectorError as `parse_criterion` does.
    """
    at = "@" if operators.childrens_parents else ""
    before = _operator(operators.parents_depth, "{}+")
    after = _operator(operators.children_depth, "+{}")
    return _checked(f"{at}{before}{method}:{value}{after}", method, value, operators, location=location)


def default_method(value: str) -> str:
    """Returns the method of a bare value: `path` with a slash, `file` with the ending of a file, otherwise `fqn`."""
    if "/" in value:
        return "path"
    return "file" if value.lower().endswith(_FILE_ENDINGS) else "fqn"


def _checked(
    raw: str,
    full_method: str,
    value: str,
    operators: Operators,
    *,
    explicit: bool = True,
    location: Location | None = None,
) -> Criterion:
    if operators.childrens_parents and operators.children_depth != 0:
        raise SelectorError(raw, "`@` already includes all children, so a `+` at the end is not allowed", [raw[1:]])
    method, *arguments = full_method.split(".")
    return Criterion(raw, method, tuple(arguments), value, explicit, operators, location)


def _operator(depth: int | None, form: str) -> str:
    """Returns an operator as text: empty for no edges, without a number for any number of edges."""
    return "" if depth == 0 else form.format("" if depth is None else depth)


def _depth(operator: str | None, digits: str | None) -> int | None:
    """Returns the depth of an operator: 0 without an operator, None (any depth) without a number."""
    if operator is None:
        return 0
    return int(digits) if digits else None


def parse_selectors(selectors: Sequence[str]) -> Union:
    """Returns the selection of command-line flags: spaces mean union, commas mean intersection.

    Raises: SelectorError for the first criterion that cannot be parsed.
    """
    words = (tuple(parse_criterion(part) for part in parts) for parts in split_union(selectors))
    return Union(tuple(Intersection(word) for word in words))


def criteria_of(selection: Selection) -> Iterator[Criterion]:
    """Yields the criteria of a selection in the order in which they are written."""
    if isinstance(selection, Criterion):
        yield selection
        return
    parts = (selection.base, selection.removed) if isinstance(selection, Difference) else selection.parts
    for part in parts:
        yield from criteria_of(part)
