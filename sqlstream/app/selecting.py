"""Selectors over a compiled project: the nodes they name, or the findings that say why they name none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from sqlstream.app.request import EVERYTHING, Selection
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import kind_of, seed_id, source_id
from sqlstream.compiler.select import SelectableNode, SelectionGraph, SelectorError, select_nodes, unmatched_criteria
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.project.values import Seed, SourceTable
from sqlstream.project.wording import quoted_list


def select(compiled: CompiledProject, selection: Selection) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Returns the selected unique ids, parents before children, and a warning for each criterion that matches nothing.

    Raises: FindingsError where the whole selection is empty, or a selector cannot be read.
    """
    graph = selection_graph(compiled)
    try:
        chosen = select_nodes(graph, selection.select, selection.exclude)
        unmatched = unmatched_criteria(graph, (*selection.select, *selection.exclude))
    except SelectorError as error:
        raise FindingsError([_unreadable(error)]) from error
    if selection.resource_types:
        chosen = frozenset(node for node in chosen if kind_of(node) in selection.resource_types)
    if not chosen:
        raise FindingsError(_empty(selection, unmatched))
    order = [node for node in compiled.graph.order if node in chosen]
    return tuple(order), tuple(_unmatched(text, near, Severity.WARNING) for text, near in unmatched)


def terminal_models(compiled: CompiledProject, chosen: Iterable[str]) -> tuple[CompiledModel, ...]:
    """Returns the terminal models among `chosen`. Raises: FindingsError where there is none."""
    chosen = tuple(chosen)
    found = tuple(
        compiled.models[node] for node in chosen if node in compiled.models and compiled.models[node].output is not None
    )
    if not found:
        raise FindingsError([_views_only(compiled, chosen)])
    return found


def selection_graph(compiled: CompiledProject) -> SelectionGraph:
    """Returns the project as selectors see it."""
    project = compiled.project
    nodes = [_model_node(project.name, model) for model in compiled.models.values()]
    nodes += [_source_node(project.name, table) for table in project.sources]
    nodes += [_seed_node(project.name, seed) for seed in project.seeds]
    return SelectionGraph({node.unique_id: node for node in nodes}, compiled.graph.parents)


def _model_node(project: str, model: CompiledModel) -> SelectableNode:
    properties = model.file.properties_location
    return SelectableNode(
        unique_id=model.unique_id,
        resource_type="model",
        name=model.name,
        fqn=(project, *model.file.folders, model.name),
        path=model.file.path,
        tags=frozenset(model.config.tags),
        config=model.config.plain(),
        sink=model.config.sink,
        properties_path=properties.path if properties else None,
    )


def _source_node(project: str, table: SourceTable) -> SelectableNode:
    config: Mapping[str, object] = {"enabled": True, "tags": list(table.tags), "meta": dict(table.meta)}
    return SelectableNode(
        unique_id=source_id(project, table),
        resource_type="source",
        name=table.name,
        fqn=(project, table.source, table.name),
        path=table.location.path,
        tags=frozenset(table.tags),
        config=config,
        source_name=table.source,
    )


def _seed_node(project: str, seed: Seed) -> SelectableNode:
    config: dict[str, object] = {"enabled": True, "tags": [], "meta": {}}
    config |= {key: located.value for key, located in seed.config.items()}
    tags = config["tags"] if isinstance(config["tags"], list) else [config["tags"]]
    return SelectableNode(
        unique_id=seed_id(project, seed.name),
        resource_type="seed",
        name=seed.name,
        fqn=(project, *PurePosixPath(seed.path).parent.parts[1:], seed.name),
        path=seed.path,
        tags=frozenset(str(tag) for tag in tags),
        config=config,
        properties_path=seed.properties_location.path if seed.properties_location else None,
    )


def _unreadable(error: SelectorError) -> Finding:
    return Finding(
        "unknown-selector",
        f"the selector `{error.criterion}` cannot be read",
        error.problem,
        f"did you mean {quoted_list(error.nearest)}?" if error.nearest else "see `sqlstream ls --help` for the methods",
    )


def _empty(selection: Selection, unmatched: tuple[tuple[str, tuple[str, ...]], ...]) -> list[Finding]:
    if unmatched:
        return [_unmatched(text, near, Severity.ERROR) for text, near in unmatched]
    if selection == EVERYTHING:
        why, fix = "it has no enabled model, seed or source", "add a model: a SELECT in a file such as models/first.sql"
        return [Finding("empty-selection", "the project has nothing to select", why, fix)]
    types = (f"--resource-type {kind}" for kind in selection.resource_types)
    given = " ".join([*selection.select, *(f"--exclude {text}" for text in selection.exclude), *types])
    return [
        Finding(
            "empty-selection",
            f"the selection `{given}` matches nothing",
            "each part matches something, but nothing is left when they are taken together",
            "see what each part matches with `sqlstream ls --select`",
        )
    ]


def _unmatched(text: str, near: tuple[str, ...], severity: Severity) -> Finding:
    return Finding(
        "empty-selection",
        f"the selector `{text}` matches nothing",
        "no enabled model, seed or source of this project fits it",
        f"did you mean {quoted_list(near)}?" if near else "`sqlstream ls` lists what there is",
        severity=severity,
    )


def _views_only(compiled: CompiledProject, chosen: tuple[str, ...]) -> Finding:
    downstream = {node for start in chosen for node in compiled.graph.descendants(start)}
    names = [model.name for node, model in compiled.models.items() if node in downstream and model.output is not None]
    shown = quoted_list([node.rsplit(".", 1)[-1] for node in chosen])
    verb = "is no terminal model" if len(chosen) == 1 else "hold no terminal model"
    return Finding(
        "no-terminal-model",
        f"{shown} {verb}, so there is no query to start",
        "a query starts for each selected model that names a sink",
        f"select {quoted_list(names)}, downstream" if names else "give a model a sink: {{ config(sink='...') }}",
    )
