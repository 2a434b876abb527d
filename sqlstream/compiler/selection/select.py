"""The nodes that `--select` and `--exclude` name: dbt's node selection, as a pure function over the graph, with hints
for what finds nothing.

Spaces separate the words of a union; commas separate the criteria of an intersection. A criterion is a method and a
value (`tag:core`) with graph operators around it (`+m`, `m+`, `2+m+1`, `@m`). `criteria.py` has the grammar and
`methods.py` the methods. tests/unit/compiler/selectors.yml contains dbt's own results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from sqlstream.compiler.selection.criteria import (
    Criterion,
    Difference,
    Intersection,
    Selection,
    SelectorError,
    criteria_of,
    default_method,
    parse_criterion,
    parse_selectors,
    split_union,
)
from sqlstream.compiler.selection.methods import (
    COMPARING,
    SELECTOR,
    SelectableNode,
    check_criterion,
    config_value,
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

MOST_HINTS = 3
"""The most corrections in a message, so that it stays readable."""


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


_Nodes = Collection[SelectableNode]
_Candidate = tuple[str, str]
"""A criterion that finds something, and the text to compare with a wrong value."""


def nearest_criteria(criterion: Criterion, nodes: _Nodes) -> tuple[str, ...]:
    """Returns at most three criteria that find some of `nodes` and resemble `criterion`, best first.

    Letter case is ignored: `ORDERS` is near `orders`. A bare name is also compared with names that only other methods
    find: the correction of `aws` is `source:aws`.
    """
    by_text: dict[str, list[str]] = {}
    for shown, compared in _candidates(criterion, nodes):
        by_text.setdefault(compared.lower(), []).append(shown)
    near = get_close_matches(criterion.value.lower(), by_text, n=MOST_HINTS)
    return tuple(dict.fromkeys(shown for text in near for shown in by_text[text]))[:MOST_HINTS]


def _candidates(criterion: Criterion, nodes: _Nodes) -> Iterator[_Candidate]:
    prefix = f"{criterion.full_method}:"
    if criterion.method == "config":
        found: Iterable[_Candidate] = _plain(_config_texts(criterion, nodes))
    else:
        found = _KINDS[criterion.method](nodes)
    for shown, compared in found:
        stands_alone = not criterion.explicit and default_method(shown) == criterion.method
        yield shown if stands_alone else prefix + shown, compared
    if criterion.method == "fqn" and not criterion.explicit:
        yield from _other_kinds(nodes)


def _plain(values: Iterable[str]) -> Iterator[_Candidate]:
    """Yields values that are compared as they are, in alphabetical order."""
    return ((value, value) for value in sorted(set(values)))


def _names(nodes: _Nodes) -> Iterator[_Candidate]:
    """Yields models, seeds and exposures by name and dotted path, and folders by dotted path and name."""
    readable = [node for node in nodes if node.resource_type != "source"]
    yield from _plain(node.name for node in readable)
    yield from _plain(".".join(node.fqn[1:]) for node in readable)
    yield from _plain(".".join(node.fqn[-2:]) for node in readable if node.version is not None)
    folders = {node.fqn[1:end] for node in readable for end in range(2, len(node.fqn))}
    for folder in sorted(folders):
        yield ".".join(folder), ".".join(folder)
        yield ".".join(folder), folder[-1]


def _sources(nodes: _Nodes) -> Iterator[_Candidate]:
    """Yields sources by name, and their tables by full name and name."""
    tables = sorted((node.source_name, node.name) for node in nodes if node.source_name is not None)
    yield from _plain(source for source, _ in tables)
    for source, table in tables:
        yield f"{source}.{table}", f"{source}.{table}"
        yield f"{source}.{table}", table


def _unit_tests(nodes: _Nodes) -> Iterator[_Candidate]:
    """Yields unit tests by name, with and without their model."""
    tests = [node for node in nodes if node.resource_type == "unit_test"]
    yield from _plain(node.name for node in tests)
    yield from _plain(".".join(node.fqn[-2:]) for node in tests)


def _tests(nodes: _Nodes) -> Iterator[_Candidate]:
    """Yields unit tests, and data tests by name, with and without their model, and by kind."""
    yield from _unit_tests(nodes)
    tests = [node for node in nodes if node.resource_type == "test"]
    yield from _plain(name for node in tests for name in (node.name, f"{node.fqn[-2]}.{node.name}", node.kind))


def _paths(nodes: _Nodes) -> Iterator[_Candidate]:
    """Yields files and folders by path and name."""
    files = {PurePosixPath(path) for node in nodes for path in (node.path, node.properties_path) if path}
    folders = {folder for file in files for folder in file.parents if folder.name}
    for path in sorted(files | folders):
        yield str(path), str(path)
        yield str(path), path.name


def _config_texts(criterion: Criterion, nodes: _Nodes) -> Iterator[str]:
    """Yields the values of the criterion's key in all nodes, as they are written in a selector."""
    values = (config_value(node.config, criterion.arguments) for node in nodes if node.resource_type != "exposure")
    items = (item for value in values for item in (value if isinstance(value, list | tuple) else [value]))
    return (str(item).lower() if isinstance(item, bool) else item for item in items if isinstance(item, str | bool))


def _other_kinds(nodes: _Nodes) -> Iterator[_Candidate]:
    """Yields what a bare name could mean with another method."""
    for method in ("source", "tag", "sink"):
        for shown, compared in _KINDS[method](nodes):
            yield f"{method}:{shown}", compared


_KINDS: Mapping[str, Callable[[_Nodes], Iterator[_Candidate]]] = {
    "fqn": _names,
    "tag": lambda nodes: _plain(tag for node in nodes for tag in node.tags),
    "source": _sources,
    "unit_test": _unit_tests,
    "test_name": _tests,
    "exposure": lambda nodes: _plain(node.name for node in nodes if node.resource_type == "exposure"),
    "group": lambda nodes: _plain(str(node.config["group"]) for node in nodes if node.config.get("group")),
    "access": lambda nodes: _plain(str(node.config["access"]) for node in nodes if node.config.get("access")),
    "sink": lambda nodes: _plain(sink for node in nodes for sink in node.sinks),
    "path": _paths,
    "file": lambda nodes: _plain(PurePosixPath(node.path).name for node in nodes),
    "resource_type": lambda nodes: _plain(node.resource_type for node in nodes),
    "package": lambda nodes: _plain(node.fqn[0] for node in nodes),
    **dict.fromkeys(("version", "state", "source_status"), lambda _: iter(())),
}
