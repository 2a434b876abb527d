"""What a criterion that finds nothing may have meant: the nearest names of the kind that its method looks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath

from sqlstream.compiler.selection.criteria import Criterion, default_method
from sqlstream.compiler.selection.methods import SelectableNode, config_value

MOST_HINTS = 3
"""How many corrections a message can hold and still be read."""

_Nodes = Collection[SelectableNode]
_Candidate = tuple[str, str]
"""A criterion that finds something, and the text that a mistaken value is compared with."""


def nearest_criteria(criterion: Criterion, nodes: _Nodes) -> tuple[str, ...]:
    """Returns at most three criteria that find some of `nodes` and look like `criterion`, best first.

    Letters' case does not count, so `ORDERS` is near `orders`. A bare name is also compared with what only another
    method finds: `aws` gives `source:aws`.
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
    """Values that are compared as they are, in alphabetic order."""
    return ((value, value) for value in sorted(set(values)))


def _names(nodes: _Nodes) -> Iterator[_Candidate]:
    """Models and seeds by name and by dotted path, and folders by dotted path and by their own name."""
    readable = [node for node in nodes if node.resource_type != "source"]
    yield from _plain(node.name for node in readable)
    yield from _plain(".".join(node.fqn[1:]) for node in readable)
    folders = {node.fqn[1:end] for node in readable for end in range(2, len(node.fqn))}
    for folder in sorted(folders):
        yield ".".join(folder), ".".join(folder)
        yield ".".join(folder), folder[-1]


def _sources(nodes: _Nodes) -> Iterator[_Candidate]:
    """Sources by name, and their tables by full name and by their own name."""
    tables = sorted((node.source_name, node.name) for node in nodes if node.source_name is not None)
    yield from _plain(source for source, _ in tables)
    for source, table in tables:
        yield f"{source}.{table}", f"{source}.{table}"
        yield f"{source}.{table}", table


def _unit_tests(nodes: _Nodes) -> Iterator[_Candidate]:
    """Unit tests by name, and by the names of their model and their own."""
    tests = [node for node in nodes if node.resource_type == "unit_test"]
    yield from _plain(node.name for node in tests)
    yield from _plain(".".join(node.fqn[-2:]) for node in tests)


def _paths(nodes: _Nodes) -> Iterator[_Candidate]:
    """Files and folders by path and by their own name."""
    files = {PurePosixPath(path) for node in nodes for path in (node.path, node.properties_path) if path}
    folders = {folder for file in files for folder in file.parents if folder.name}
    for path in sorted(files | folders):
        yield str(path), str(path)
        yield str(path), path.name


def _config_texts(criterion: Criterion, nodes: _Nodes) -> Iterator[str]:
    """The values that any node has for the criterion's key, as they are written in a selector."""
    for node in nodes:
        value = config_value(node.config, criterion.arguments)
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, bool):
                yield str(item).lower()
            elif isinstance(item, str):
                yield item


def _other_kinds(nodes: _Nodes) -> Iterator[_Candidate]:
    """What a bare name may have meant had it named a method."""
    for method in ("source", "tag", "sink"):
        for shown, compared in _KINDS[method](nodes):
            yield f"{method}:{shown}", compared


_KINDS: Mapping[str, Callable[[_Nodes], Iterator[_Candidate]]] = {
    "fqn": _names,
    "tag": lambda nodes: _plain(tag for node in nodes for tag in node.tags),
    "source": _sources,
    "unit_test": _unit_tests,
    "test_name": _unit_tests,
    "sink": lambda nodes: _plain(node.sink for node in nodes if node.sink is not None),
    "path": _paths,
    "file": lambda nodes: _plain(PurePosixPath(node.path).name for node in nodes),
    "resource_type": lambda nodes: _plain(node.resource_type for node in nodes),
    "package": lambda nodes: _plain(node.fqn[0] for node in nodes),
    "state": lambda _: iter(()),
}
