"""Suggests corrections for a criterion that finds nothing: the nearest names of the kind that its method matches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath

from sqlstream.compiler.selection.criteria import Criterion, default_method
from sqlstream.compiler.selection.methods import SelectableNode, config_value

MOST_HINTS = 3
"""The most corrections in a message, so that it stays readable."""

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
    "test_name": _unit_tests,
    "exposure": lambda nodes: _plain(node.name for node in nodes if node.resource_type == "exposure"),
    "sink": lambda nodes: _plain(sink for node in nodes for sink in node.sinks),
    "path": _paths,
    "file": lambda nodes: _plain(PurePosixPath(node.path).name for node in nodes),
    "resource_type": lambda nodes: _plain(node.resource_type for node in nodes),
    "package": lambda nodes: _plain(node.fqn[0] for node in nodes),
    **dict.fromkeys(("state", "source_status"), lambda _: iter(())),
}
