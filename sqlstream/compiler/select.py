"""Which nodes `--select` and `--exclude` name: dbt's node selection, as a pure function over the graph.

A selection is a union of words between spaces; a word an intersection of criteria between commas; a criterion a method
and a value (`tag:core`), with graph operators around it (`+m`, `m+`, `2+m+1`, `@m`). See `select_criteria` for the
grammar and `select_methods` for the methods. tests/unit/compiler/selectors.yml holds dbt's own answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlstream.compiler.select_criteria import Criterion, SelectorError, parse_criterion, split_union
from sqlstream.compiler.select_hints import nearest_criteria
from sqlstream.compiler.select_methods import SelectableNode, find_matcher

__all__ = ["SelectableNode", "SelectionGraph", "SelectorError", "select_nodes", "unmatched_criteria"]


@dataclass(frozen=True)
class SelectionGraph:
    """The enabled nodes by unique id, and what each reads directly.

    `parents` may name ids that are not in `nodes` (disabled models): nothing is selected by way of them.
    """

    nodes: Mapping[str, SelectableNode]
    parents: Mapping[str, tuple[str, ...]]

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
    included = _union(graph, select) if select else frozenset(graph.nodes)
    return included - _union(graph, exclude)


def unmatched_criteria(graph: SelectionGraph, select: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns each criterion of `select` that finds no node, as given, with at most three likely corrections.

    A correction can be typed as it is (`tag:core`, `source:aws`); graph operators are left out. A word with a comma
    too many finds nothing in dbt, so it is given whole, with the word without that comma. Each is given once, in order.

    Raises: SelectorError for the first criterion that cannot be read.
    """
    unmatched: dict[str, tuple[str, ...]] = {}
    for parts in split_union(select):
        given = [part for part in parts if part]
        if len(given) < len(parts):
            unmatched[",".join(parts)] = (",".join(given),) if given else ()
        for part in given:
            criterion = parse_criterion(part)
            if not _find(graph, criterion):
                unmatched[part] = nearest_criteria(criterion, tuple(graph.nodes.values()))
    return tuple(unmatched.items())


def _union(graph: SelectionGraph, selectors: Sequence[str]) -> frozenset[str]:
    """The nodes of any word. All words are read first, so that a bad one is an error wherever it stands."""
    words = [[parse_criterion(part) for part in parts] for parts in split_union(selectors)]
    chosen = [frozenset.intersection(*(_expand(graph, criterion) for criterion in word)) for word in words]
    return frozenset[str]().union(*chosen)


def _expand(graph: SelectionGraph, criterion: Criterion) -> frozenset[str]:
    """The nodes of a criterion, with those that its graph operators add."""
    found = _find(graph, criterion)
    needed = frozenset[str]()
    if criterion.childrens_parents:
        family = found | graph.descendants(found)
        needed = family | graph.ancestors(family)
    parents = graph.ancestors(found, criterion.parents_depth)
    return found | needed | parents | graph.descendants(found, criterion.children_depth)


def _find(graph: SelectionGraph, criterion: Criterion) -> frozenset[str]:
    """The nodes that a criterion's method finds."""
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
