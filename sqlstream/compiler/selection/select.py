"""Which nodes `--select` and `--exclude` name: dbt's node selection, as a pure function over the graph.

A selection is a union of words between spaces; a word an intersection of criteria between commas; a criterion a method
and a value (`tag:core`), with graph operators around it (`+m`, `m+`, `2+m+1`, `@m`). See `select_criteria` for the
grammar and `select_methods` for the methods. tests/unit/compiler/selectors.yml holds dbt's own answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlstream.compiler.selection.criteria import Criterion, SelectorError, parse_criterion, split_union
from sqlstream.compiler.selection.hints import nearest_criteria
from sqlstream.compiler.selection.methods import SELECTOR, STATE, SelectableNode, check_criterion, find_matcher
from sqlstream.compiler.selection.names import named_selectors
from sqlstream.compiler.selection.sets import Difference, Intersection, Selection, criteria_of, parse_selectors
from sqlstream.location import Location

__all__ = [
    "SelectableNode",
    "SelectionGraph",
    "SelectorError",
    "Unmatched",
    "evaluate",
    "select_nodes",
    "unmatched_criteria",
    "unmatched_in",
    "used_criteria",
]


@dataclass(frozen=True)
class SelectionGraph:
    """The enabled nodes by unique id, and what each reads directly.

    `parents` may name ids that are not in `nodes` (disabled models): nothing is selected by way of them. `selectors`
    are those of selectors.yml by name; none may lead to itself.
    """

    nodes: Mapping[str, SelectableNode]
    parents: Mapping[str, tuple[str, ...]]
    selectors: Mapping[str, Selection] = field(default_factory=dict)

    @cached_property
    def _known_parents(self) -> Mapping[str, tuple[str, ...]]:
        return {node: tuple(p for p in self.parents.get(node, ()) if p in self.nodes) for node in self.nodes}

    @cached_property
    def _children(self) -> Mapping[str, tuple[str, ...]]:
        children: dict[str, list[str]] = {node: [] for node in self.nodes}
        for node, parents in self._known_parents.items():
            for parent in parents:
                children[parent].append(node)
        return {node: tuple(found) for node, found in children.items()}

    def ancestors(self, starts: Iterable[str], depth: int | None = None) -> frozenset[str]:
        """Returns what `starts` read, directly or not, at most `depth` edges away (None: at any distance)."""
        return _reach(starts, self._known_parents, depth)

    def descendants(self, starts: Iterable[str], depth: int | None = None) -> frozenset[str]:
        """Returns what reads `starts`, directly or not, at most `depth` edges away (None: at any distance)."""
        return _reach(starts, self._children, depth)


def select_nodes(graph: SelectionGraph, select: Sequence[str], exclude: Sequence[str]) -> frozenset[str]:
    """Returns the unique ids that dbt would select: those of any of `select` but of none of `exclude`.

    Each item is the value of one flag; spaces within it separate, too. No item in `select` means every node, but an
    item that is empty selects nothing. What matches nothing is no error here: see `unmatched_criteria`.

    Raises: SelectorError for the first criterion that cannot be read.
    """
    included = evaluate(graph, _checked(select)) if select else frozenset(graph.nodes)
    return included - evaluate(graph, _checked(exclude))


def evaluate(graph: SelectionGraph, selection: Selection) -> frozenset[str]:
    """Returns the unique ids that a selection takes. Raises: SelectorError for a selector that is not there."""
    if isinstance(selection, Criterion):
        return _expand(graph, selection)
    if isinstance(selection, Difference):
        return evaluate(graph, selection.base) - evaluate(graph, selection.removed)
    found = [evaluate(graph, part) for part in selection.parts]
    if isinstance(selection, Intersection):
        return frozenset.intersection(*found) if found else frozenset()
    return frozenset[str]().union(*found)


def removed_nodes(graph: SelectionGraph, selection: Selection) -> frozenset[str]:
    """Returns the unique ids that any `exclude` within a selection names, also in the selectors that it takes."""
    if isinstance(selection, Difference):
        return evaluate(graph, selection.removed) | removed_nodes(graph, selection.base)
    if isinstance(selection, Criterion):
        names = named_selectors(selection, graph.selectors) if selection.method == SELECTOR else ()
        return frozenset[str]().union(*(removed_nodes(graph, graph.selectors[name]) for name in names))
    return frozenset[str]().union(*(removed_nodes(graph, part) for part in selection.parts))


class Unmatched(NamedTuple):
    """A criterion that finds no node, as given, at most three likely corrections, and its place in selectors.yml.

    `compares` says that it looks for changes (`state:`), of which there may well be none.
    """

    text: str
    nearest: tuple[str, ...]
    location: Location | None = None
    compares: bool = False


def unmatched_criteria(graph: SelectionGraph, select: Sequence[str]) -> tuple[Unmatched, ...]:
    """Returns each criterion of `select` that finds no node.

    A correction can be typed as it is (`tag:core`, `source:aws`); graph operators are left out. A word with a comma
    too many finds nothing in dbt, so it is given whole, with the word without that comma. Of a selector its criteria
    are given. Each is given once, in order.

    Raises: SelectorError for the first criterion that cannot be read.
    """
    unmatched: dict[Unmatched, None] = {}
    for parts in split_union(select):
        given = [part for part in parts if part]
        if len(given) < len(parts):
            unmatched[Unmatched(",".join(parts), (",".join(given),) if given else ())] = None
        for part in given:
            unmatched.update(dict.fromkeys(unmatched_in(graph, parse_criterion(part))))
    return tuple(unmatched)


def unmatched_in(graph: SelectionGraph, selection: Selection) -> tuple[Unmatched, ...]:
    """Returns each criterion of a selection, and of the selectors that it takes, that finds no node, once, in order."""
    nodes = tuple(graph.nodes.values())
    missing = [criterion for criterion in used_criteria(graph, selection) if not _find(graph, criterion)]
    return tuple(
        dict.fromkeys(
            Unmatched(each.raw, nearest_criteria(each, nodes), each.location, compares=each.method == STATE)
            for each in missing
        )
    )


def used_criteria(graph: SelectionGraph, selection: Selection) -> Iterator[Criterion]:
    """Gives the criteria of a selection in order, those of a selector in the place of its name."""
    for criterion in criteria_of(selection):
        if criterion.method == SELECTOR:
            for name in named_selectors(criterion, graph.selectors):
                yield from used_criteria(graph, graph.selectors[name])
        else:
            yield criterion


def _checked(selectors: Sequence[str]) -> Selection:
    """The selection of flags. All of it is checked, so that a bad criterion is an error wherever it stands."""
    selection = parse_selectors(selectors)
    for criterion in criteria_of(selection):
        check_criterion(criterion)
    return selection


def _expand(graph: SelectionGraph, criterion: Criterion) -> frozenset[str]:
    """The nodes of a criterion, with those that its graph operators add."""
    found = _find(graph, criterion)
    needed = frozenset[str]()
    operators = criterion.operators
    if operators.childrens_parents:
        family = found | graph.descendants(found)
        needed = family | graph.ancestors(family)
    parents = graph.ancestors(found, operators.parents_depth)
    return found | needed | parents | graph.descendants(found, operators.children_depth)


def _find(graph: SelectionGraph, criterion: Criterion) -> frozenset[str]:
    """The nodes that a criterion's method finds."""
    if criterion.method == SELECTOR:
        names = named_selectors(criterion, graph.selectors)
        return frozenset[str]().union(*(evaluate(graph, graph.selectors[name]) for name in names))
    matches = find_matcher(criterion)
    return frozenset(unique_id for unique_id, node in graph.nodes.items() if matches(node))


def _reach(starts: Iterable[str], edges: Mapping[str, tuple[str, ...]], depth: int | None) -> frozenset[str]:
    """What is 1 to `depth` edges away from any of `starts`."""
    reached: set[str] = set()
    layer = set(starts)
    steps = 0
    while layer and (depth is None or steps < depth):
        layer = {neighbour for node in layer for neighbour in edges[node]} - reached
        reached |= layer
        steps += 1
    return frozenset(reached)
