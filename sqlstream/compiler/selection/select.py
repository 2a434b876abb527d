"""The nodes that `--select` and `--exclude` name: dbt's node selection, as a pure function over the graph.

Spaces separate the words of a union; commas separate the criteria of an intersection. A criterion is a method and a
value (`tag:core`) with graph operators around it (`+m`, `m+`, `2+m+1`, `@m`). `criteria.py` has the grammar and
`methods.py` the methods. tests/unit/compiler/selectors.yml contains dbt's own results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlstream.compiler.selection.criteria import (
    Criterion,
    Difference,
    Intersection,
    Selection,
    SelectorError,
    criteria_of,
    parse_criterion,
    parse_selectors,
    split_union,
)
from sqlstream.compiler.selection.hints import nearest_criteria
from sqlstream.compiler.selection.methods import (
    COMPARING,
    SELECTOR,
    SelectableNode,
    check_criterion,
    find_matcher,
    named_selectors,
)
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

    `parents` can contain ids that are not in `nodes` (disabled models); graph operators end there. `selectors` are
    those of selectors.yml by name, without cycles.
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
        """Returns what `starts` read, directly or not, at most `depth` edges away (None: any distance)."""
        return _reach(starts, self._known_parents, depth)

    def descendants(self, starts: Iterable[str], depth: int | None = None) -> frozenset[str]:
        """Returns what reads `starts`, directly or not, at most `depth` edges away (None: any distance)."""
        return _reach(starts, self._children, depth)


def select_nodes(graph: SelectionGraph, select: Sequence[str], exclude: Sequence[str]) -> frozenset[str]:
    """Returns the unique ids that dbt would select: those in any of `select` and in none of `exclude`.

    Each item is the value of one flag, with spaces between its words. Without items, `select` means every node, but an
    empty item selects nothing. `unmatched_criteria` finds criteria that match no node.

    Raises: SelectorError for the first criterion that cannot be parsed.
    """
    included = evaluate(graph, _checked(select)) if select else frozenset(graph.nodes)
    return included - evaluate(graph, _checked(exclude))


def evaluate(graph: SelectionGraph, selection: Selection) -> frozenset[str]:
    """Returns the unique ids in a selection. Raises: SelectorError for a selector that does not exist."""
    if isinstance(selection, Criterion):
        return _expand(graph, selection)
    if isinstance(selection, Difference):
        return evaluate(graph, selection.base) - evaluate(graph, selection.removed)
    found = [evaluate(graph, part) for part in selection.parts]
    if isinstance(selection, Intersection):
        return frozenset.intersection(*found) if found else frozenset()
    return frozenset[str]().union(*found)


def removed_nodes(graph: SelectionGraph, selection: Selection) -> frozenset[str]:
    """Returns the unique ids that any `exclude` in a selection names, also in its selectors."""
    if isinstance(selection, Difference):
        return evaluate(graph, selection.removed) | removed_nodes(graph, selection.base)
    if isinstance(selection, Criterion):
        names = named_selectors(selection, graph.selectors) if selection.method == SELECTOR else ()
        return frozenset[str]().union(*(removed_nodes(graph, graph.selectors[name]) for name in names))
    return frozenset[str]().union(*(removed_nodes(graph, part) for part in selection.parts))


class Unmatched(NamedTuple):
    """A criterion that finds no node, as given, at most three likely corrections, and its location in selectors.yml.

    `compares`: it looks for changes (`state:`, `source_status:`), and it is normal to find none.
    """

    text: str
    nearest: tuple[str, ...]
    location: Location | None = None
    compares: bool = False


def unmatched_criteria(graph: SelectionGraph, select: Sequence[str]) -> tuple[Unmatched, ...]:
    """Returns each criterion of `select` that finds no node.

    A correction can be used as it is (`tag:core`, `source:aws`), without graph operators. A word with an extra comma
    finds nothing in dbt, so the result has the whole word, and the word without that comma as correction. The result
    has the criteria of selectors instead of their names, each once and in order.

    Raises: SelectorError for the first criterion that cannot be parsed.
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
    """Returns each criterion of a selection and its selectors that finds no node, once and in order."""
    nodes = tuple(graph.nodes.values())
    missing = [criterion for criterion in used_criteria(graph, selection) if not _find(graph, criterion)]
    return tuple(
        dict.fromkeys(
            Unmatched(each.raw, nearest_criteria(each, nodes), each.location, compares=each.method in COMPARING)
            for each in missing
        )
    )


def used_criteria(graph: SelectionGraph, selection: Selection) -> Iterator[Criterion]:
    """Yields the criteria of a selection in order; for a selector, the criteria of its definition."""
    for criterion in criteria_of(selection):
        if criterion.method != SELECTOR:
            yield criterion
            continue
        for name in named_selectors(criterion, graph.selectors):
            yield from used_criteria(graph, graph.selectors[name])


def _checked(selectors: Sequence[str]) -> Selection:
    """Returns the selection of flags, after a check of all its criteria."""
    selection = parse_selectors(selectors)
    for criterion in criteria_of(selection):
        check_criterion(criterion)
    return selection


def _expand(graph: SelectionGraph, criterion: Criterion) -> frozenset[str]:
    """Returns the nodes of a criterion, with those that its graph operators add."""
    found = _find(graph, criterion)
    needed = frozenset[str]()
    operators = criterion.operators
    if operators.childrens_parents:
        family = found | graph.descendants(found)
        needed = family | graph.ancestors(family)
    parents = graph.ancestors(found, operators.parents_depth)
    return found | needed | parents | graph.descendants(found, operators.children_depth)


def _find(graph: SelectionGraph, criterion: Criterion) -> frozenset[str]:
    """Returns the nodes that a criterion's method finds."""
    if criterion.method == SELECTOR:
        names = named_selectors(criterion, graph.selectors)
        return frozenset[str]().union(*(evaluate(graph, graph.selectors[name]) for name in names))
    matches = find_matcher(criterion)
    return frozenset(unique_id for unique_id, node in graph.nodes.items() if matches(node))


def _reach(starts: Iterable[str], edges: Mapping[str, tuple[str, ...]], depth: int | None) -> frozenset[str]:
    """Returns the nodes that are 1 to `depth` edges away from any of `starts`."""
    reached: set[str] = set()
    layer = set(starts)
    steps = 0
    while layer and (depth is None or steps < depth):
        layer = {neighbour for node in layer for neighbour in edges[node]} - reached
        reached |= layer
        steps += 1
    return frozenset(reached)
