"""The selection methods: which nodes a criterion of each method finds.

The methods are dbt's (dbt/graph/selector_methods.py of dbt-core 1.11), except `sink:`. Every comparison is
case-sensitive on every system, with the wildcards of `fnmatch`: `*`, `?` and `[]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from sqlstream.compiler.selection.criteria import Criterion, SelectorError
from sqlstream.project.configuration.properties import ModelVersion
from sqlstream.project.wording import nearest, quoted_list

DBT_RESOURCE_TYPES = (
    "model", "seed", "source", "exposure", "analysis", "doc", "fixture", "function", "group", "macro", "metric",
    "operation", "rpc", "saved_query", "semantic_model", "snapshot", "sql_operation", "test", "unit_test",
)  # fmt: skip
"""The values of `resource_type:`. Only the first four find nodes in a sqlstream project; dbt has the others."""

STATE = "state"
"""The method that matches the results of a comparison with a saved manifest."""

SOURCE_STATUS = "source_status"
"""The method that matches the results of a comparison with saved results of `source freshness`."""

COMPARING = (STATE, SOURCE_STATUS)
"""The methods that look for changes; it is normal that they find none."""

STATES = (
    "new",
    "old",
    "modified",
    "unmodified",
    "modified.body",
    "modified.configs",
    "modified.contract",
    "modified.macros",
)
"""The values of `state:`."""

VERSIONS = ("latest", "prerelease", "old", "none")
"""The values of `version:`."""

SELECTOR = "selector"
"""The method that includes a selector of selectors.yml."""


@dataclass(frozen=True)
class SelectableNode:
    """The attributes of one enabled model or exposure, seed or source table that selectors can match.

    `unique_id` has dbt's form (`model.<project>.<name>`, `source.<project>.<source>.<table>`). `resource_type` is
    model, seed, source or exposure; `name` is a source table's name without its source. `fqn` is the project's name,
    the folders below models/ or seeds/, and the name (for a source: of the source and the table; for a version of a
    model: of the model, and `v1`; `version` is this version, and `name` that of its file). `path` is the file that
    defines it, and `properties_path` the YAML file with properties of a model or seed, both posix and relative to
    the project. `config` is the effective configuration with at least `enabled`, `tags` and `meta`. `sinks` are the
    names of the sinks to which its query writes; `source_name` the source of a source table. `states` are the `STATES`
    from a comparison with a saved manifest; None without a comparison. `is_fresher`
    is whether a source has newer data than in a saved sources.json; None without a comparison. `kind` is what a data
    test tests, such as `not_null`.
    """

    unique_id: str
    resource_type: str
    name: str
    fqn: tuple[str, ...]
    path: str
    tags: frozenset[str]
    config: Mapping[str, object]
    sinks: tuple[str, ...] = ()
    source_name: str | None = None
    properties_path: str | None = None
    states: frozenset[str] | None = None
    is_fresher: bool | None = None
    version: ModelVersion | None = None
    kind: str = ""


class NoStateError(ValueError):
    """A selection uses `state:` or `source_status:` without a saved file for comparison.

    `criterion` is the text as given, `file` the name of the file.
    """

    def __init__(self, criterion: str, file: str = "manifest.json") -> None:
        self.criterion = criterion
        self.file = file
        super().__init__(criterion)


Matcher = Callable[[SelectableNode], bool]
"""Whether a criterion finds a node, without its graph operators."""


def find_matcher(criterion: Criterion) -> Matcher:
    """Returns the matcher of a criterion.

    Raises: SelectorError for an unknown method, or a value that the method does not accept.
    """
    method = METHODS.get(criterion.method)
    if method is None:
        known = (*METHODS, SELECTOR)
        problem = f"`{criterion.method}` is not a selection method; the methods are {', '.join(known)}"
        raise SelectorError(criterion.raw, problem, nearest(criterion.method, known))
    return method(criterion)


def check_criterion(criterion: Criterion) -> None:
    """Checks the method and the value of a criterion. Raises: SelectorError as `find_matcher` does."""
    if criterion.method != SELECTOR:
        find_matcher(criterion)


def _by_fqn(criterion: Criterion) -> Matcher:
    """Matches a name, or the first words of its dotted path, with or without the project; never a source.

    `orders` also matches every version of the model `orders`, and `orders.v1` or `orders_v1` this one. A version also
    has the name of its file.
    """

    def matches(node: SelectableNode) -> bool:
        if node.resource_type == "source":
            return False
        paths = [node.fqn, node.fqn[1:]]
        if node.version is None:
            return any(_fqn_matches(path, criterion.value) for path in paths)
        if _is_version(node.version, criterion.value):
            return True
        files = [(*path[:-2], node.name) for path in paths]
        return any(_fqn_matches(path, criterion.value) for path in (*paths, *files))

    return matches


def _is_version(version: ModelVersion, value: str) -> bool:
    """Returns whether `value` is the name of a model, also with wildcards, or ends with that of this version."""
    if "." not in value and fnmatchcase(version.name, value):
        return True
    return "_".join(value.split(".")[-2:]) == f"{version.name}_v{version.v}"


def _fqn_matches(fqn: Sequence[str], value: str) -> bool:
    """Returns whether `value` is the last word or the start of `fqn`; with wildcards it must match to the end."""
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
    """Matches `source`, `source.table` or `project.source.table`."""
    words = criterion.value.split(".")
    if len(words) > 3:
        raise SelectorError(criterion.raw, "the form of a source is source, source.table or project.source.table")
    padded = [*words, "*"] if len(words) == 1 else words
    patterns = padded if len(padded) == 3 else ["*", *padded]
    return lambda node: (
        node.resource_type == "source"
        and all(map(fnmatchcase, (node.fqn[0], node.source_name or "", node.name), patterns))
    )


def _by_exposure(criterion: Criterion) -> Matcher:
    """Matches `exposure` or `project.exposure`."""
    words = criterion.value.split(".")
    if len(words) > 2:
        raise SelectorError(criterion.raw, "the form of an exposure is exposure or project.exposure")
    patterns = words if len(words) == 2 else ["*", *words]
    return lambda node: node.resource_type == "exposure" and all(map(fnmatchcase, (node.fqn[0], node.name), patterns))


def _by_sink(criterion: Criterion) -> Matcher:
    return lambda node: any(fnmatchcase(sink, criterion.value) for sink in node.sinks)


def _by_group(criterion: Criterion) -> Matcher:
    return lambda node: node.config.get("group") == criterion.value


def _by_access(criterion: Criterion) -> Matcher:
    return lambda node: node.config.get("access") == criterion.value


def _by_version(criterion: Criterion) -> Matcher:
    """Matches models by how their version compares with the latest one; `none` is a model without versions."""
    if criterion.value not in VERSIONS:
        close = nearest(criterion.value, VERSIONS) or VERSIONS
        problem = f"`{criterion.value}` is none of {quoted_list(VERSIONS)}"
        raise SelectorError(criterion.raw, problem, [f"version:{word}" for word in close])
    return lambda node: (
        node.resource_type == "model" and criterion.value == ("none" if node.version is None else node.version.release)
    )


def _by_path(criterion: Criterion) -> Matcher:
    """Matches a glob like pathlib's with the defining file, the folders above it, and the properties file."""
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
    """Returns the glob's parts: `**` is any number of folders, every other part matches one name."""
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
    """Matches the name of the defining file, with or without its extension."""
    return lambda node: any(
        fnmatchcase(name, criterion.value) for name in (PurePosixPath(node.path).name, PurePosixPath(node.path).stem)
    )


def _by_package(criterion: Criterion) -> Matcher:
    """Matches the project's name, or `this`."""
    return lambda node: criterion.value == "this" or fnmatchcase(node.fqn[0], criterion.value)


def _by_unit_test(criterion: Criterion) -> Matcher:
    """Matches the name of a unit test, with or without its model: `model.name`."""
    return lambda node: (
        node.resource_type == "unit_test"
        and any(fnmatchcase(name, criterion.value) for name in (node.name, ".".join(node.fqn[-2:])))
    )


def _by_test_name(criterion: Criterion) -> Matcher:
    """Matches a unit test, or a data test by its name, with or without its model, or by the kind of test, as in dbt."""
    by_unit_test = _by_unit_test(criterion)
    return lambda node: (
        by_unit_test(node)
        or (
            node.resource_type == "test"
            and any(
                fnmatchcase(name, criterion.value) for name in (node.name, f"{node.fqn[-2]}.{node.name}", node.kind)
            )
        )
    )


def _by_resource_type(criterion: Criterion) -> Matcher:
    if criterion.value not in DBT_RESOURCE_TYPES:
        close = nearest(criterion.value, DBT_RESOURCE_TYPES[:4]) or DBT_RESOURCE_TYPES[:4]
        raise SelectorError(criterion.raw, f"`{criterion.value}` is not a resource type", close)
    return lambda node: node.resource_type == criterion.value


def _by_state(criterion: Criterion) -> Matcher:
    """Matches a result of the comparison with a saved manifest. The matcher raises NoStateError without one."""
    if criterion.value not in STATES:
        close = nearest(criterion.value, STATES) or STATES
        raise SelectorError(criterion.raw, f"`{criterion.value}` is not a state", [f"state:{word}" for word in close])

    def matches(node: SelectableNode) -> bool:
        if node.states is None:
            raise NoStateError(criterion.raw)
        return criterion.value in node.states

    return matches


def _by_source_status(criterion: Criterion) -> Matcher:
    """Matches sources with newer data than in a saved sources.json. The matcher raises NoStateError without one."""
    if criterion.value != "fresher":
        raise SelectorError(criterion.raw, f"`{criterion.value}` is not a status of sources", ["source_status:fresher"])

    def matches(node: SelectableNode) -> bool:
        if node.is_fresher is None:
            raise NoStateError(criterion.raw, "sources.json")
        return node.is_fresher

    return matches


def _by_config(criterion: Criterion) -> Matcher:
    """Matches a configured text, or one item of a configured list, without wildcards. `true` and `false` also match
    booleans.

    Numbers and mappings never match, nor do exposures, as in dbt. `severity` ignores case.
    """
    fold = str.upper if criterion.arguments == ("severity",) else str
    wanted = {"TRUE": True, "FALSE": False}.get(criterion.value.upper())

    def equals(value: object) -> bool:
        if isinstance(value, str):
            return fold(value) == fold(criterion.value)
        return wanted is not None and value is wanted

    def matches(node: SelectableNode) -> bool:
        if node.resource_type == "exposure":
            return False
        value = config_value(node.config, criterion.arguments)
        return any(equals(item) for item in value) if isinstance(value, list | tuple) else equals(value)

    return matches


def config_value(config: Mapping[str, object], keys: Sequence[str]) -> object:
    """Returns the value in `config` at the path `keys`, outermost first; None if a key is missing."""
    value: object = config
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


METHODS: Mapping[str, Callable[[Criterion], Matcher]] = {
    "fqn": _by_fqn,
    "tag": _by_tag,
    "source": _by_source,
    "sink": _by_sink,
    "exposure": _by_exposure,
    "group": _by_group,
    "access": _by_access,
    "version": _by_version,
    "path": _by_path,
    "file": _by_file,
    "config": _by_config,
    "resource_type": _by_resource_type,
    "unit_test": _by_unit_test,
    "test_name": _by_test_name,
    "package": _by_package,
    STATE: _by_state,
    SOURCE_STATUS: _by_source_status,
}
"""The methods that match nodes, by name, in the order in which messages list them."""


def named_selectors(criterion: Criterion, names: Iterable[str]) -> tuple[str, ...]:
    """Returns those of `names` that a `selector:` criterion names, with the wildcards of `fnmatch`.

    Raises: SelectorError if there are none.
    """
    known = tuple(names)
    found = tuple(name for name in known if name == criterion.value or fnmatchcase(name, criterion.value))
    if found:
        return found
    problem = f"selectors.yml has no selector with that name; it has {quoted_list(known) if known else 'none'}"
    raise SelectorError(criterion.raw, problem, [f"{SELECTOR}:{name}" for name in nearest(criterion.value, known)])
