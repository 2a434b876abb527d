"""The names of selectors.yml in other selectors: which there are, and that none leads to itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter

from sqlstream.compiler.selection.criteria import Criterion, SelectorError
from sqlstream.compiler.selection.definitions import criterion_finding
from sqlstream.compiler.selection.methods import SELECTOR
from sqlstream.compiler.selection.sets import Selection, criteria_of
from sqlstream.errors import Finding
from sqlstream.project.nearest import nearest
from sqlstream.project.values import Selector
from sqlstream.project.wording import quoted_list


def named_selectors(criterion: Criterion, names: Iterable[str]) -> tuple[str, ...]:
    """Returns those of `names` that a `selector:` criterion names; `*`, `?` and `[]` are those of `fnmatch`.

    Raises: SelectorError where there is none.
    """
    known = tuple(names)
    found = tuple(name for name in known if name == criterion.value or fnmatchcase(name, criterion.value))
    if found:
        return found
    problem = f"selectors.yml has no selector with that name; it has {quoted_list(known) if known else 'none'}"
    raise SelectorError(criterion.raw, problem, [f"{SELECTOR}:{name}" for name in nearest(criterion.value, known)])


def check_names(selectors: Sequence[Selector], selections: Mapping[str, Selection], findings: list[Finding]) -> None:
    """Adds a finding for each name in a definition that no selector has, and one where selectors lead to themselves."""
    known = len(findings)
    edges: dict[str, list[str]] = {name: [] for name in selections}
    for name, selection in selections.items():
        for criterion in criteria_of(selection):
            if criterion.method == SELECTOR:
                edges[name] += _names_in(criterion, selections, findings)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        if len(findings) == known:
            findings.append(_circle(error.args[1], selectors))


def _names_in(criterion: Criterion, names: Iterable[str], findings: list[Finding]) -> tuple[str, ...]:
    try:
        return named_selectors(criterion, names)
    except SelectorError as error:
        findings.append(criterion_finding(error, criterion.location))
        return ()


def _circle(names: Sequence[str], selectors: Sequence[Selector]) -> Finding:
    places = {selector.name: selector.location for selector in selectors}
    circle = list(reversed(names))
    return Finding(
        "cycle",
        f"selectors refer to each other in a cycle: {' -> '.join(circle)}",
        "a selector cannot depend on itself",
        f"remove `selector: {circle[1]}` from `{circle[0]}`, or one of the others",
        places[circle[0]],
    )
