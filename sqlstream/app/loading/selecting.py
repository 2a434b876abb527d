"""Evaluates selectors over a compiled project: returns the selected nodes, or findings on why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sqlstream.app.loading.artifacts import MANIFEST
from sqlstream.app.loading.saved_state import fresher_sources, read_state
from sqlstream.app.loading.selectable import selectable_nodes
from sqlstream.app.loading.unselected import empty_selection, unknown_name, unmatched_finding
from sqlstream.app.request import Selection
from sqlstream.compiler.allowances import lowered_by_rules
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.compiler.node_ids import EXPOSURE, kind_of
from sqlstream.compiler.selection.criteria import Selection as Definition
from sqlstream.compiler.selection.criteria import parse_selectors
from sqlstream.compiler.selection.definitions import criterion_finding, read_definitions
from sqlstream.compiler.selection.methods import COMPARING, NoStateError
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
from sqlstream.project.values import Project
from sqlstream.project.wording import quoted, quoted_list


class SelectableTest(NamedTuple):
    """A unit test as selectors see it, and the unique id of its model."""

    node: SelectableNode
    model: str


def select(
    compiled: CompiledProject, selection: Selection, tests: Sequence[SelectableTest] = ()
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Returns the selected unique ids, parents before children, and a warning for each criterion that matches nothing.
    Ids in `selection.nodes` that do not exist any more are left out, with a warning.

    `tests` are the unit tests that can be selected. A selected model also selects its tests, as in dbt.

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
        from sqlstream.compiler.manifest.changes import find_states  # loads Jinja, which compares templates

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
        chosen = _and_tests(evaluate(graph, definition), tests)
        return _SelectionResult(chosen, unmatched_in(graph, definition), _compares(graph, definition))
    excluded = select_nodes(graph, selection.exclude, ()) if selection.exclude else frozenset()
    chosen = _and_tests(select_nodes(graph, selection.select, ()), tests) - _and_tests(excluded, tests)
    return _SelectionResult(chosen, unmatched_criteria(graph, flags), _compares(graph, parse_selectors(flags)))


def _with_tests(graph: SelectionGraph, tests: Sequence[SelectableTest]) -> SelectionGraph:
    nodes = {**graph.nodes, **{test.node.unique_id: test.node for test in tests}}
    parents = {**graph.parents, **{test.node.unique_id: (test.model,) for test in tests}}
    return SelectionGraph(nodes, parents, graph.selectors)


def _and_tests(nodes: frozenset[str], tests: Sequence[SelectableTest]) -> frozenset[str]:
    return nodes | {test.node.unique_id for test in tests if test.model in nodes}


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
