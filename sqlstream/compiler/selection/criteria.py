"""What one selector says: `2+tag:core+1` as a frozen criterion, or the error that says why it cannot be read.

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
    """A criterion that no project could answer: an unknown method, or a value that its method cannot take.

    `criterion` is the text as given, `problem` says in one line what is wrong with it, and `nearest` are the words
    that may have been meant, best first.
    """

    def __init__(self, criterion: str, problem: str, nearest: Sequence[str] = ()) -> None:
        self.criterion = criterion
        self.problem = problem
        self.nearest = tuple(nearest)
        super().__init__(f"`{criterion}`: {problem}")


@dataclass(frozen=True)
class Operators:
    """The graph operators around a criterion. A depth counts edges: 0 is none, None is all.

    `childrens_parents` is the `@` prefix: the children and all that any of them needs.
    """

    parents_depth: int | None = 0
    children_depth: int | None = 0
    childrens_parents: bool = False


@dataclass(frozen=True)
class Criterion:
    """One criterion: which nodes `method` finds for `value`, and how far to go from them.

    `raw` is the text as given. `arguments` are the method's words after its first dot (`config.meta.owner` has
    `("meta", "owner")`). `explicit` is whether the method was written. `location` is its place in selectors.yml, None
    for a criterion of the command line.
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
        """The method with its arguments, as it is written before the colon."""
        return ".".join((self.method, *self.arguments))


def split_union(selectors: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields the intersections whose union `selectors` is: per word between spaces, its parts between commas.

    Two spaces in a row, or one at an end, make no word. A comma at an end makes an empty part.
    """
    for selector in selectors:
        for word in selector.split(" "):
            if word:
                yield tuple(word.split(","))


def parse_criterion(raw: str) -> Criterion:
    """Returns the criterion that `raw` says. Its method is not looked up yet.

    Raises: SelectorError where `@` and a trailing `+` stand together, which contradict each other.
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
    """Returns the criterion of a method and a value that are given apart, so that the value may hold anything.

    Raises: SelectorError as `parse_criterion` does.
    """
    at = "@" if operators.childrens_parents else ""
    before = _operator(operators.parents_depth, "{}+")
    after = _operator(operators.children_depth, "+{}")
    return _checked(f"{at}{before}{method}:{value}{after}", method, value, operators, location=location)


def default_method(value: str) -> str:
    """Returns the method of a bare value: what has a slash is a path, what ends like a file is a file, else fqn."""
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
    """An operator as it is written: nothing for no edges, no number for all of them."""
    return "" if depth == 0 else form.format("" if depth is None else depth)


def _depth(operator: str | None, digits: str | None) -> int | None:
    """How many edges an operator goes: none where it is absent, all where it has no number."""
    if operator is None:
        return 0
    return int(digits) if digits else None
