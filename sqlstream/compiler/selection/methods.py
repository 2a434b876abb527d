"""The selection methods: for each method's name, which nodes a criterion of it finds.

The rules are dbt's (dbt/graph/selector_methods.py of dbt-core 1.11), and `sink:` is sqlstream's own. Every comparison
is case-sensitive on every system, and `*`, `?` and `[]` are those of `fnmatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from sqlstream.compiler.selection.criteria import Criterion, SelectorError

DBT_RESOURCE_TYPES = (
    "model", "seed", "source", "analysis", "doc", "exposure", "fixture", "function", "group", "macro", "metric",
    "operation", "rpc", "saved_query", "semantic_model", "snapshot", "sql_operation", "test", "unit_test",
)  # fmt: skip
"""What `resource_type:` takes. All but the first three are dbt's, and find nothing in an sqlstream project."""


@dataclass(frozen=True)
class SelectableNode:
    """What selectors can ask of one enabled model, seed or source table.

    `unique_id` is as dbt writes it (`model.<project>.<name>`, `source.<project>.<source>.<table>`). `resource_type` is
    model, seed or source; `name` a source table's own name. `fqn` is the project's name, the folders below models/ or
    seeds/, and the name (of a source: the source's and the table's). `path` is the file that defines it, and
    `properties_path` the YAML file that adds properties to a model or seed, both posix and relative to the project.
    `config` is the effective configuration and holds at least `enabled`, `tags` and `meta`. `sink` is the name of a
    terminal model's sink; `source_name` the source of a source table. `states` are those of `STATES` that a comparison
    with a saved manifest has given; None where there was none.
    """

    unique_id: str
    resource_type: str
    name: str
    fqn: tuple[str, ...]
    path: str
    tags: frozenset[str]
    config: Mapping[str, object]
    sink: str | None = None
    source_name: str | None = None
    properties_path: str | None = None
    states: frozenset[str] | None = None


class NoStateError(ValueError):
    """`state:` is asked for, and there is no saved manifest to compare with; `criterion` is the text as given."""

    def __init__(self, criterion: str) -> None:
        self.criterion = criterion
        super().__init__(criterion)


STATE = "state"
"""The method that looks at what a comparison with a saved manifest has given."""

STATES = ("new", "old", "modified", "unmodified", "modified.body", "modified.configs", "modified.macros")
"""What `state:` takes."""

Matcher = Callable[[SelectableNode], bool]
"""Whether a node is one of those that a criterion finds, before its graph operators."""


def find_matcher(criterion: Criterion) -> Matcher:
    """Returns the matcher of a criterion.

    Raises: SelectorError where the method is unknown, or where it cannot take the criterion's value.
    """
    method = METHODS.get(criterion.method)
    if method is None:
        nearest = get_close_matches(criterion.method.lower(), (*METHODS, SELECTOR), n=3)
        problem = f"`{criterion.method}` is not a selection method; the methods are {', '.join((*METHODS, SELECTOR))}"
        raise SelectorError(criterion.raw, problem, nearest)
    return method(criterion)


def check_criterion(criterion: Criterion) -> None:
    """Returns nothing for a criterion that some project could answer.

    Raises: SelectorError as `find_matcher` does.
    """
    if criterion.method != SELECTOR:
        find_matcher(criterion)


def _by_fqn(criterion: Criterion) -> Matcher:
    """A name, or the first words of the path to it, with or without the project's name; never a source."""

    def matches(node: SelectableNode) -> bool:
        if node.resource_type == "source":
            return False
        return _fqn_matches(node.fqn, criterion.value) or _fqn_matches(node.fqn[1:], criterion.value)

    return matches


def _fqn_matches(fqn: Sequence[str], value: str) -> bool:
    """Whether `value` is the last word of `fqn` or a beginning of it; from its first wildcard on it must match all."""
    if fqn[-1] == value:
        return True
    have = ".".join(fqn).split(".")
    want = value.split(".")
    if len(have) < len(want):
        return False
    plain = next((index for index, word in enumerate(want) if any(sign in word for sign in "*?[]")), len(want))
    if have[:plain] != want[:plain]:
        return False
    if plain == len(want) or fnmatchcase(".".join(have[plain:]), ".".join(want[plain:])):
        return True
    return "." not in value and fnmatchcase(fqn[-1], value)


def _by_tag(criterion: Criterion) -> Matcher:
    return lambda node: any(fnmatchcase(tag, criterion.value) for tag in node.tags)


def _by_source(criterion: Criterion) -> Matcher:
    """`source`, `source.table` or `project.source.table`."""
    words = criterion.value.split(".")
    if len(words) > 3:
        raise SelectorError(criterion.raw, "the form of a source is source, source.table or project.source.table")
    padded = [*words, "*"] if len(words) == 1 else words
    patterns = padded if len(padded) == 3 else ["*", *padded]

    def matches(node: SelectableNode) -> bool:
        if node.resource_type != "source":
            return False
        names = (node.fqn[0], node.source_name or "", node.name)
        return all(fnmatchcase(name, pattern) for name, pattern in zip(names, patterns, strict=True))

    return matches


def _by_sink(criterion: Criterion) -> Matcher:
    return lambda node: node.sink is not None and fnmatchcase(node.sink, criterion.value)


def _by_path(criterion: Criterion) -> Matcher:
    """A glob over the defining file, the properties file, and the folders above the defining file, as pathlib's."""
    pattern = _path_pattern(criterion)
    folders_only = criterion.value.endswith("/") or pattern[-1] == "**"

    def matches(node: SelectableNode) -> bool:
        file = PurePosixPath(node.path).parts
        if any(_parts_match(pattern, file[:depth]) for depth in range(len(file))):
            return True
        files = [file] if node.properties_path is None else [file, PurePosixPath(node.properties_path).parts]
        return not folders_only and any(_parts_match(pattern, parts) for parts in files)

    return matches


def _path_pattern(criterion: Criterion) -> tuple[str, ...]:
    """The glob's parts: `**` is any number of folders, every other part matches one name."""
    parts = tuple(part for part in criterion.value.split("/") if part not in ("", "."))
    if criterion.value.startswith("/"):
        raise SelectorError(
            criterion.raw, "a path must be relative to the project directory", [criterion.value.lstrip("/")]
        )
    if not parts:
        raise SelectorError(criterion.raw, "the path is empty; use `*` for the whole project", ["path:*"])
    if any("**" in part and part != "**" for part in parts):
        raise SelectorError(criterion.raw, "`**` matches whole folders, so it must be alone between slashes")
    return parts


def _parts_match(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_parts_match(pattern[1:], parts[skipped:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _parts_match(pattern[1:], parts[1:])


def _by_file(criterion: Criterion) -> Matcher:
    """The name of the defining file, with or without its extension."""

    def matches(node: SelectableNode) -> bool:
        path = PurePosixPath(node.path)
        return fnmatchcase(path.name, criterion.value) or fnmatchcase(path.stem, criterion.value)

    return matches


def _by_package(criterion: Criterion) -> Matcher:
    """The project's name, or `this`."""
    return lambda node: criterion.value == "this" or fnmatchcase(node.fqn[0], criterion.value)


def _by_unit_test(criterion: Criterion) -> Matcher:
    """The name of a unit test, alone or behind that of its model: `model.name`."""

    def matches(node: SelectableNode) -> bool:
        if node.resource_type != "unit_test":
            return False
        return any(fnmatchcase(name, criterion.value) for name in (node.name, ".".join(node.fqn[-2:])))

    return matches


def _by_resource_type(criterion: Criterion) -> Matcher:
    if criterion.value not in DBT_RESOURCE_TYPES:
        nearest = get_close_matches(criterion.value.lower(), DBT_RESOURCE_TYPES[:3]) or DBT_RESOURCE_TYPES[:3]
        raise SelectorError(criterion.raw, f"`{criterion.value}` is not a resource type", nearest)
    return lambda node: node.resource_type == criterion.value


def _by_state(criterion: Criterion) -> Matcher:
    """What a comparison with a saved manifest says; the matcher raises NoStateError where there was none."""
    if criterion.value not in STATES:
        nearest = get_close_matches(criterion.value.lower(), STATES, n=3) or STATES
        raise SelectorError(criterion.raw, f"`{criterion.value}` is not a state", [f"state:{word}" for word in nearest])

    def matches(node: SelectableNode) -> bool:
        if node.states is None:
            raise NoStateError(criterion.raw)
        return criterion.value in node.states

    return matches


def _by_config(criterion: Criterion) -> Matcher:
    """A configured text, or one item of a configured list; no wildcards. `true` and `false` mean the booleans too.

    Numbers and whole mappings are never equal to a selector's text, as in dbt. `severity` ignores case.
    """
    text = criterion.value.upper() if criterion.arguments == ("severity",) else criterion.value
    wanted = {"TRUE": True, "FALSE": False}.get(criterion.value.upper())

    def equals(value: object) -> bool:
        if isinstance(value, str):
            return text == (value.upper() if criterion.arguments == ("severity",) else value)
        return wanted is not None and value is wanted

    def matches(node: SelectableNode) -> bool:
        value = config_value(node.config, criterion.arguments)
        return any(equals(item) for item in value) if isinstance(value, list | tuple) else equals(value)

    return matches


def config_value(config: Mapping[str, object], keys: Sequence[str]) -> object:
    """Returns what `config` holds below `keys`, outermost first, or None where any of them is missing."""
    value: object = config
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


METHODS: Mapping[str, Callable[[Criterion], Matcher]] = {
    "fqn": _by_fqn,
    "tag": _by_tag,
    "source": _by_source,
    "sink": _by_sink,
    "path": _by_path,
    "file": _by_file,
    "config": _by_config,
    "resource_type": _by_resource_type,
    "unit_test": _by_unit_test,
    "test_name": _by_unit_test,
    "package": _by_package,
    STATE: _by_state,
}
"""Every method that looks at nodes, by its name, in the order in which messages list them."""

SELECTOR = "selector"
"""The method that looks at no node, but takes what a selector of selectors.yml takes."""
