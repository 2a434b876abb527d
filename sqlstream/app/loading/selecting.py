"""Evaluates selectors over a compiled project and its saved artifacts: returns the selected nodes, or findings on why
there are none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlstream.app.loading.artifacts import MANIFEST, SOURCES
from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.selectable import selectable_nodes
from sqlstream.app.request import Selection
from sqlstream.compiler.allowances import lowered_by_rules
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import EXPOSURE, kind_of
from sqlstream.compiler.manifest.manifest import MANIFEST_VERSION, build_manifest
from sqlstream.compiler.selection.criteria import Selection as Definition
from sqlstream.compiler.selection.criteria import parse_selectors
from sqlstream.compiler.selection.definitions import criterion_finding, read_definitions
from sqlstream.compiler.selection.methods import COMPARING, SOURCE_STATUS, NoStateError
from sqlstream.compiler.selection.select import (
    SelectableNode,
    SelectionGraph,
    SelectorError,
    Unmatched,
    evaluate,
    removed_nodes,
    select_nodes,
    unmatched_criteria,
    unmatched_in,
    used_criteria,
)
from sqlstream.errors import Finding, FindingsError, Severity, UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.project.values import Project
from sqlstream.project.wording import alternatives, did_you_mean, quoted, quoted_list


class SelectableTest(NamedTuple):
    """A unit test or a data test as selectors see it, and the unique id of its model. `source` is that of the source
    whose rows it tests, None for tests of models.
    """

    node: SelectableNode
    model: str
    source: str | None = None


def select(
    compiled: CompiledProject, selection: Selection, tests: Sequence[SelectableTest] = ()
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Returns the selected unique ids, parents before children, and a warning for each criterion that matches nothing.
    Ids in `selection.nodes` that do not exist any more are left out, with a warning.

    `tests` are the unit tests or data tests that can be selected. A selected model also selects its tests, as in dbt.

    A selection with `state:` may be empty, if nothing has changed. That is also a warning.
    Raises: FindingsError if any other selection is empty, or a selector is invalid; UsageError if there is no state to
    compare with.
    """
    definitions = _definitions(compiled.project)
    every = (*compiled.graph.order, *(test.node.unique_id for test in tests))
    if selection.nodes is not None:
        gone = sorted(selection.nodes.difference(every))
        return tuple(node for node in every if node in selection.nodes), tuple(map(_gone, gone))
    selection = _with_default(compiled.project, selection)
    found = _find(compiled, definitions, selection, tests)
    chosen = frozenset(node for node in found.nodes if selection.has_type(kind_of(node)))
    if chosen:
        warnings = [unmatched_finding(each, Severity.WARNING) for each in found.unmatched]
    else:
        problems = empty_selection(selection, found.unmatched)
        may_be_empty = found.compares and all(unmatched.compares for unmatched in found.unmatched)
        if not may_be_empty:
            raise FindingsError(problems)
        warnings = [replace(problem, severity=Severity.WARNING) for problem in problems]
    return tuple(node for node in every if node in chosen), tuple(lowered_by_rules(compiled.project, warnings))


def names_tests(compiled: CompiledProject, selection: Selection) -> bool:
    """Returns whether a criterion of a selection that can be read has the method `test_name`. Raises: FindingsError for
    invalid selectors in selectors.yml.
    """
    definitions = _definitions(compiled.project)
    selection = _with_default(compiled.project, selection)
    graph = SelectionGraph({}, {}, definitions)
    try:
        flags = parse_selectors((*selection.select, *selection.exclude))
        chosen = flags if selection.selector is None else definitions.get(selection.selector, flags)
        return any(criterion.method == "test_name" for criterion in used_criteria(graph, chosen))
    except SelectorError:
        return False  # `select` reports it


def nodes_excluded(compiled: CompiledProject, selection: Selection) -> frozenset[str]:
    """Returns the unique ids that --exclude, or an `exclude` of the selectors in use, names.

    The selection must be valid: `select` has read it before.
    """
    definitions = _definitions(compiled.project)
    selection = _with_default(compiled.project, selection)
    graph = selection_graph(compiled, definitions, selection.state)
    excluded = select_nodes(graph, selection.exclude, ()) if selection.exclude else frozenset()
    included = parse_selectors(selection.select) if selection.selector is None else definitions[selection.selector]
    return excluded | removed_nodes(graph, included)


def terminal_models(compiled: CompiledProject, chosen: Iterable[str]) -> tuple[CompiledModel, ...]:
    """Returns the terminal models among `chosen`. Raises: FindingsError if there is none."""
    chosen = tuple(chosen)
    found = terminal_among(compiled, chosen)
    if not found:
        raise FindingsError([_views_only(compiled, chosen)])
    return found


def terminal_among(compiled: CompiledProject, chosen: Iterable[str]) -> tuple[CompiledModel, ...]:
    """Returns the terminal models among `chosen`, which may be none."""
    models = (compiled.models[node] for node in chosen if node in compiled.models)
    return tuple(model for model in models if model.output is not None)


def _definitions(project: Project) -> Mapping[str, Definition]:
    """Returns the selectors of selectors.yml. Raises: FindingsError for invalid ones."""
    findings: list[Finding] = []
    definitions = read_definitions(project.selectors, findings)
    if findings:
        raise FindingsError(findings)
    return definitions


def selection_graph(
    compiled: CompiledProject, definitions: Mapping[str, Definition], state: Path | None
) -> SelectionGraph:
    """Returns the project as selectors see it, with these definitions. If there is a saved `state`, the graph knows how
    each node differs from it. A folder with a sources.json needs no manifest.

    Raises: UsageError if the state cannot be read.
    """
    nodes = selectable_nodes(compiled)
    fresher = None if state is None else fresher_sources(state, compiled.project.root)
    if fresher is not None:
        nodes = {unique_id: replace(node, is_fresher=unique_id in fresher) for unique_id, node in nodes.items()}
    if state is not None and (fresher is None or (state / MANIFEST).exists()):
        from sqlstream.compiler.manifest.state_method import find_states  # loads Jinja, which compares templates

        manifest = build_manifest(compiled, generated_at="", invocation_id="")
        states = find_states(read_state(state), manifest)
        nodes = {unique_id: replace(node, states=states[unique_id]) for unique_id, node in nodes.items()}
    return SelectionGraph(nodes, compiled.graph.parents, definitions)


class _SelectionResult(NamedTuple):
    """The nodes of a selection, the criteria that match none, and whether any criterion uses `state:`."""

    nodes: frozenset[str]
    unmatched: tuple[Unmatched, ...]
    compares: bool


def _find(
    compiled: CompiledProject,
    definitions: Mapping[str, Definition],
    selection: Selection,
    tests: Sequence[SelectableTest],
) -> _SelectionResult:
    try:
        return _evaluate(compiled, definitions, selection, tests)
    except SelectorError as error:
        raise FindingsError([criterion_finding(error)]) from error
    except NoStateError as error:
        problem = f"`{error.criterion}` compares with a saved {error.file}, but there is none"
        raise UsageError(f"{problem}; pass its folder with --state or SQLSTREAM_STATE") from error


def _evaluate(
    compiled: CompiledProject,
    definitions: Mapping[str, Definition],
    selection: Selection,
    tests: Sequence[SelectableTest],
) -> _SelectionResult:
    flags = (*selection.select, *selection.exclude)
    if not flags and selection.selector is None and selection.state is None:
        return _SelectionResult(frozenset((*compiled.graph.order, *(test.node.unique_id for test in tests))), (), False)
    graph = _with_tests(selection_graph(compiled, definitions, selection.state), tests)
    if selection.selector is not None:
        if selection.selector not in definitions:
            raise FindingsError([unknown_name(selection.selector, definitions)])
        definition = definitions[selection.selector]
        named = evaluate(graph, definition)
        chosen = named | (_and_tests(named, tests) - removed_nodes(graph, definition))
        return _SelectionResult(chosen, unmatched_in(graph, definition), _compares(graph, definition))
    excluded = select_nodes(graph, selection.exclude, ()) if selection.exclude else frozenset()
    chosen = _and_tests(select_nodes(graph, selection.select, ()), tests) - _and_tests(excluded, tests)
    return _SelectionResult(chosen, unmatched_criteria(graph, flags), _compares(graph, parse_selectors(flags)))


def _with_tests(graph: SelectionGraph, tests: Sequence[SelectableTest]) -> SelectionGraph:
    nodes = {**graph.nodes, **{test.node.unique_id: test.node for test in tests}}
    parents = {**graph.parents, **{test.node.unique_id: (test.model,) for test in tests}}
    return SelectionGraph(nodes, parents, graph.selectors)


def _and_tests(nodes: frozenset[str], tests: Sequence[SelectableTest]) -> frozenset[str]:
    return nodes | {test.node.unique_id for test in tests if test.model in nodes or test.source in nodes}


def _compares(graph: SelectionGraph, selection: Definition) -> bool:
    return any(criterion.method in COMPARING for criterion in used_criteria(graph, selection))


def _with_default(project: Project, selection: Selection) -> Selection:
    """Returns the selection; if it is empty, with the default selector of selectors.yml."""
    if selection.select or selection.exclude or selection.selector is not None:
        return selection
    default = next((selector.name for selector in project.selectors if selector.is_default), None)
    return replace(selection, selector=default)


def _gone(unique_id: str) -> Finding:
    what = quoted(unique_id.split(".", 2)[-1])
    why, fix = (
        "it was removed, renamed or disabled after the command that is retried",
        "no action needed if it was removed on purpose",
    )
    return Finding("empty-selection", f"{what} does not exist any more", why, fix, severity=Severity.WARNING)


def _views_only(compiled: CompiledProject, chosen: tuple[str, ...]) -> Finding:
    downstream = {node for start in chosen for node in compiled.graph.descendants(start)}
    names = [model.name for node, model in compiled.models.items() if node in downstream and model.output is not None]
    shown = quoted_list([_name(node) for node in chosen])
    verb = "is not a terminal model" if len(chosen) == 1 else "contain no terminal model"
    fix = f"select {quoted_list(names)}, downstream" if names else "set a sink for a model: {{ config(sink='...') }}"
    exposures = [node for node in chosen if kind_of(node) == EXPOSURE]
    if len(exposures) == len(chosen):
        verb = "is an exposure" if len(chosen) == 1 else "are exposures"
    if exposures and not names:
        fix = f"select {quoted_list([f'+exposure:{_name(node)}' for node in exposures])}, with everything upstream"
    return Finding(
        "no-terminal-model",
        f"{shown} {verb}, so there is no query to start",
        "only models with a sink run as queries",
        fix,
    )


def _name(node: str) -> str:
    return node.rsplit(".", 1)[-1]


def empty_selection(selection: Selection, unmatched: Sequence[Unmatched]) -> list[Finding]:
    """Returns a finding for each criterion that matches nothing, or one for the whole selection if each matches."""
    if unmatched:
        return [unmatched_finding(each, Severity.ERROR) for each in unmatched]
    if given := _as_flags(selection):
        message = f"the selection `{given}` matches nothing"
        why = "each part matches some nodes, but no node matches the combination"
        fix = "run `sqlstream ls --select` to see what each part matches"
    else:
        message = "the project has no nodes to select"
        why = "it has no enabled models, seeds or sources"
        fix = "add a model: a SELECT in a file such as models/first.sql"
    return [Finding("empty-selection", message, why, fix)]


def unmatched_finding(unmatched: Unmatched, severity: Severity) -> Finding:
    """Returns the finding for a criterion that matches nothing."""
    why, fix = (
        "it matches no enabled model, seed, source or exposure of this project",
        "run `sqlstream ls` to list them",
    )
    if unmatched.text.startswith(("unit_test:", "test_name:")):
        kinds, types = "unit test", "unit_test"
        if unmatched.text.startswith("test_name:"):
            kinds, types = "data test or unit test", "test --resource-type unit_test"
        why = f"it matches no {kinds} that this command selects"
        fix = f"run `sqlstream ls --resource-type {types}` to list them"
    if unmatched.compares:
        what = "data newer" if unmatched.text.lstrip("@+0123456789").startswith(f"{SOURCE_STATUS}:") else "a change"
        why = "no node in this project differs in this way from the saved state"
        fix = f"nothing to do; if you expected {what} than before, check the files in --state"
    elif unmatched.nearest:
        fix = f"did you mean {alternatives(unmatched.nearest)}?"
    message = f"the selector `{unmatched.text}` matches nothing"
    return Finding("empty-selection", message, why, fix, unmatched.location, severity)


def unknown_name(name: str, selectors: Collection[str]) -> Finding:
    """Returns the finding for a --selector that selectors.yml does not define."""
    return Finding(
        "unknown-selector",
        f"there is no selector {quoted(name)}",
        "--selector needs the name of a selector in selectors.yml",
        did_you_mean(name, selectors) if selectors else "define it in selectors.yml, or use --select",
    )


def _as_flags(selection: Selection) -> str:
    types = (f"--resource-type {kind}" for kind in selection.resource_types)
    excluded = (f"--exclude-resource-type {kind}" for kind in selection.excluded_types)
    named = [f"--selector {selection.selector}"] if selection.selector is not None else []
    return " ".join(
        [*named, *selection.select, *(f"--exclude {text}" for text in selection.exclude), *types, *excluded]
    )


_MAPPINGS = ("metadata", "nodes", "sources", "sinks", "macro_files", "vars")
_ENTRIES = ("nodes", "sources", "sinks")


def read_state(path: Path) -> dict[str, Any]:
    """Returns the manifest at `path`, a manifest.json or its folder.

    Raises: UsageError if there is none, or another version of sqlstream has written it.
    """
    file = path / MANIFEST if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"--state: there is no {file}; use one that `sqlstream compile` has written") from error
    except OSError as error:
        raise UsageError(f"--state: {file} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--state: {file} is not valid JSON; use a manifest.json of `sqlstream compile`") from error
    metadata = content.get("metadata") if isinstance(content, dict) else None
    version = metadata.get("manifest_version") if isinstance(metadata, dict) else None
    if version != MANIFEST_VERSION:
        found = "not a manifest of sqlstream" if version is None else f"a manifest of version {version}"
        needed = f"version {MANIFEST_VERSION} is needed: compile that project again"
        raise UsageError(f"--state: {file} is {found}; {needed}")
    if not _is_manifest(content):
        raise UsageError(f"--state: {file} is damaged; compile that project again")
    return dict(content)


def _is_manifest(content: dict[str, Any]) -> bool:
    if not all(isinstance(content.get(key), dict) for key in _MAPPINGS):
        return False
    entries = [entry for key in _ENTRIES for entry in content[key].values()]
    texts = content["macro_files"].values()
    return all(isinstance(entry, dict) for entry in entries) and all(isinstance(text, str) for text in texts)


def fresher_sources(folder: Path, root: Path) -> frozenset[str] | None:
    """Returns the ids of the sources with newer data in target/sources.json of the project at `root` than in the
    sources.json of `folder`. Sources without a result there are new. None if `folder` has no such file.

    Raises: UsageError if one of the files cannot be read, or the project has none.
    """
    if not (folder / SOURCES).is_file():
        return None
    current, before = root / ARTIFACTS_FOLDER / SOURCES, _loaded_at(folder / SOURCES)
    if not current.is_file():
        raise UsageError(f"--state: there is no {current} to compare; run `sqlstream source freshness` first")
    return frozenset(node for node, at in _loaded_at(current).items() if node not in before or at > before[node])


def _loaded_at(file: Path) -> dict[str, datetime]:
    """Returns the times of the newest data in the results of `source freshness`, without failed checks."""
    try:
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
        times = [(each["unique_id"], each["max_loaded_at"]) for each in results if "max_loaded_at" in each]
        return {str(node): datetime.fromisoformat(time) for node, time in times}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--state: {file} is not a result of `sqlstream source freshness`") from error


def named_queries(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    selection: Selection,
    option: str,
    selectors: Sequence[str],
    command: str = "run",
) -> tuple[str, ...]:
    """Returns the names of those `models` of a command that the `selectors` of an option select.

    Raises: FindingsError for a selector that is invalid or matches nothing; UsageError if it selects none of `models`,
    unless these are nodes to retry, which may be only some of those that the option was meant for.
    """
    named: list[str] = []
    for selector in selectors:
        chosen, _ = select(loaded.compiled, Selection((selector,), state=selection.state))
        found = [model.name for model in models if model.unique_id in chosen]
        if not found and selection.nodes is None:
            problem = f"{option} {selector} selects no query of this {command}"
            raise UsageError(f"{problem}; {did_you_mean(selector, [model.name for model in models])}")
        named += found
    return tuple(named)
