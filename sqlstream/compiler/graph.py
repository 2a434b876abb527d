"""The graph of sources, seeds, models and exposures, built from ref() and source(), and dbt's ids of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from sqlstream.compiler.render.rendered import NoVersionError, Reference, RenderedModel, find_version
from sqlstream.compiler.sql.sql_text import view_name
from sqlstream.errors import Finding
from sqlstream.project.configuration.reference_calls import ReferenceCall
from sqlstream.project.values import ExposureInput, ModelFile, Project, SourceTable
from sqlstream.project.wording import did_you_mean, quoted, quoted_list

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest  # few projects need its documents

SOURCE, SEED, MODEL, EXPOSURE, SINK, STORED = "source", "seed", "model", "exposure", "sink", "stored"
"""The kinds of nodes and of sinks, the first part of each id. A stored output is no node of the graph: queries read it
instead of its model.
"""

UNIT_TEST, DATA_TEST = "unit_test", "test"
"""The kinds of tests, which can be selected, and are no nodes of the graph."""


@dataclass(frozen=True)
class Graph:
    """The nodes are unique ids as in dbt: `model.<project>.<name>`, `source.<project>.<source>.<table>`,
    `seed.<project>.<name>`, `exposure.<project>.<name>`. `parents` and `children` have an entry for every node. `order`
    has parents first.
    """

    parents: Mapping[str, tuple[str, ...]]
    children: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]

    def ancestors(self, node_id: str) -> frozenset[str]:
        """Returns all nodes upstream of `node_id`."""
        return frozenset(closure_of(self.parents, self.parents[node_id]))

    def descendants(self, node_id: str) -> frozenset[str]:
        """Returns all nodes downstream of `node_id`."""
        return frozenset(closure_of(self.children, self.children[node_id]))


@dataclass(frozen=True)
class NodeNames:
    """The ids of models and seeds by name, those of sources by (source, table), and the names of disabled models.
    `source_files` are the files that declare each source.
    """

    nodes: Mapping[str, str]
    sources: Mapping[tuple[str, ...], str]
    disabled: frozenset[str]
    source_files: Mapping[str, frozenset[str]] = field(default_factory=dict)


def project_names(project: Project, enabled: Iterable[str]) -> NodeNames:
    """Returns the names that ref() and source() can use. `enabled` are the names of the enabled models."""
    enabled = set(enabled)
    nodes = {seed.name: seed_id(project.name, seed.name) for seed in project.seeds}
    nodes |= {name: model_id(project.name, name) for name in enabled}
    sources: dict[tuple[str, ...], str] = {
        (table.source, table.name): source_id(project.name, table) for table in project.sources
    }
    disabled = frozenset(model.name for model in project.models if model.name not in enabled)
    files: dict[str, frozenset[str]] = {}
    for table in project.sources:
        files[table.source] = files.get(table.source, frozenset()) | {table.location.path}
    return NodeNames(nodes, sources, disabled, files)


def resolve_reference(reference: Reference, names: NodeNames) -> str | Finding:
    """Returns the unique id of the node that `reference` names, or a finding if there is none."""
    if reference.kind == "source":
        return names.sources.get(reference.parts) or _unknown_source(reference, names)
    name = reference.parts[-1]
    if name in names.nodes:
        return names.nodes[name]
    if name in names.disabled:
        fix = f"enable `{name}` (enabled: true), or also disable this model"
        return _unresolved(reference, "disabled-ref", f"`{name}` is disabled", "nothing can read a disabled model", fix)
    tables = [f"source('{source}', '{table}')" for source, table in names.sources if table == name]
    why = "ref() takes the name of a file in models/ or seeds/, without the extension"
    fix = f"read a source table with {' or '.join(tables)}" if tables else did_you_mean(name, names.nodes)
    return _unresolved(reference, "unknown-ref", f"`{name}` is not a model or a seed of this project", why, fix)


def resolve_in(file: ModelFile, reference: Reference, project: Project, names: NodeNames) -> str | Finding:
    """Returns the unique id of the node that a model reads for `reference`, or a finding if there is none: for a source
    with data tests the view that checks them.
    """
    found = resolve_reference(reference, names)
    if reference.kind == "source" and file.tests is None:
        name = project.tested_sources.get(".".join(reference.parts))
        return found if name is None or isinstance(found, Finding) else model_id(project.name, name)
    return found


def _unresolved(reference: Reference, code: str, message: str, why: str, fix: str) -> Finding:
    return Finding(code, message, why, fix, reference.location, calls=reference.calls)


def _unknown_source(reference: Reference, names: NodeNames) -> Finding:
    given = ".".join(reference.parts)
    files = names.source_files.get(reference.parts[0]) or frozenset().union(*names.source_files.values())
    declared = f"; see {quoted_list(sorted(files))}" if files else ", and no file declares a source"
    why = f"source() takes the names of a source and of one of its tables{declared}"
    fix = did_you_mean(given, [".".join(parts) for parts in names.sources])
    return _unresolved(reference, "unknown-source", f"`{given}` is not a declared source table", why, fix)


def exposure_inputs(project: Project, names: NodeNames) -> Mapping[str, tuple[str | Finding, ...]]:
    """Returns what each exposure depends on, by its unique id: ids of nodes, and a finding for each unknown one."""
    return {
        exposure_id(project.name, exposure.name): tuple(
            _resolve_input(_with_version(item, project), project.name, names) for item in exposure.inputs
        )
        for exposure in project.exposures
    }


def parents_of(test: DataTest, project: Project, names: NodeNames) -> list[str | Finding]:
    """Returns the unique ids of the other tables that a data test reads, and a finding for each that does not exist."""
    calls = test.references if test.parent is None else (test.parent,)
    return [_parent(test, call, project, names) for call in calls]


def _parent(test: DataTest, call: ReferenceCall, project: Project, names: NodeNames) -> str | Finding:
    item = _with_version(ExposureInput(call.kind, call.parts, test.location, call.version), project)
    found = _resolve_input(item, project.name, names)
    if isinstance(found, Finding) and found.code == "disabled-ref":
        why, fix = "a disabled model has no table with which to compare", "enable it, or remove the data test"
        return replace(found, why=why, fix=fix)
    return found


def _with_version(item: ExposureInput, project: Project) -> ExposureInput:
    """Returns an input that names the file of the version of a model; an unknown version stays, as an unknown name."""
    if item.kind != "ref":
        return item
    try:
        name = find_version(project.versions, item.parts[-1], item.version)
    except NoVersionError:
        name = f"{item.parts[-1]}_v{item.version}"
    return replace(item, parts=(*item.parts[:-1], name))


def _resolve_input(item: ExposureInput, project: str, names: NodeNames) -> str | Finding:
    if item.kind == "ref" and len(item.parts) == 2 and item.parts[0] != project:
        return Finding(
            "unknown-ref",
            f"{quoted(item.parts[0])} is not the name of this project",
            f"the first of two names in ref() is the project, and this project is `{project}`",
            f"use ref() with {quoted(item.parts[1])} alone",
            item.location,
        )
    parts = item.parts if item.kind == "source" else item.parts[-1:]
    found = resolve_reference(Reference(item.kind, parts, item.location), names)
    if isinstance(found, Finding) and found.code == "disabled-ref":
        why, fix = "an exposure cannot depend on a disabled model", f"enable `{parts[0]}`, or disable the exposure"
        return replace(found, why=why, fix=f"{fix} (`config: {{enabled: false}}`)")
    return found


def build_graph(
    names: NodeNames, models: Mapping[str, RenderedModel], parents: Mapping[str, Sequence[str]]
) -> Graph | Finding:
    """Returns the graph of all nodes, or the finding for a cycle. `parents` are the resolved references of each model
    and exposure.
    """
    all_nodes = sorted({*names.nodes.values(), *names.sources.values(), *parents})
    unique = {node: tuple(dict.fromkeys(parents.get(node, ()))) for node in all_nodes}
    try:
        order = tuple(TopologicalSorter(unique).static_order())
    except CycleError as error:
        return _cycle_finding(error.args[1], models)
    children: dict[str, list[str]] = {node: [] for node in all_nodes}
    for node in all_nodes:
        for parent in unique[node]:
            children[parent].append(node)
    return Graph(unique, {node: tuple(found) for node, found in children.items()}, order)


def _cycle_finding(cycle: Sequence[str], models: Mapping[str, RenderedModel]) -> Finding:
    """Returns the finding for a `cycle` of graphlib, where each node precedes one that reads it, and first = last."""
    path = list(reversed(cycle))
    names = [node.rsplit(".", 1)[-1] for node in path]
    # The alphabetically first model, so that the message does not depend on the order of files.
    first = min(range(len(names) - 1), key=lambda index: names[index])
    ring = [*names[first:-1], *names[: first + 1]]
    model = models[path[first]]
    calls = [reference.location for reference in model.references if reference.parts[-1] == ring[1]]
    return Finding(
        "cycle",
        "models depend on each other in a cycle: " + " -> ".join(ring),
        "a stream cannot read its own output, so a model can depend only on its upstream models",
        f"remove one of these references, for example ref('{ring[1]}') in `{ring[0]}`",
        calls[0] if calls else model.file.location,
    )


def closure_of(edges: Mapping[str, Collection[str]], nodes: Iterable[str]) -> KeysView[str]:
    """Returns `nodes` and all nodes that are reachable from them through `edges`, in a stable order."""
    found: dict[str, None] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting.extend(edges[node])
    return found.keys()


def source_id(project: str, table: SourceTable) -> str:
    """Returns `source.<project>.<source>.<table>`. `project` is the name of the project."""
    return f"{SOURCE}.{project}.{table.full_name}"


def seed_id(project: str, name: str) -> str:
    """Returns `seed.<project>.<name>`."""
    return f"{SEED}.{project}.{name}"


def model_id(project: str, name: str) -> str:
    """Returns `model.<project>.<name>`."""
    return f"{MODEL}.{project}.{name}"


def sink_id(project: str, name: str) -> str:
    """Returns `sink.<project>.<name>`."""
    return f"{SINK}.{project}.{name}"


def exposure_id(project: str, name: str) -> str:
    """Returns `exposure.<project>.<name>`."""
    return f"{EXPOSURE}.{project}.{name}"


def stored_id(project: str, name: str) -> str:
    """Returns `stored.<project>.<name>`, the stored output of the model `name`."""
    return f"{STORED}.{project}.{name}"


def group_id(project: str, name: str) -> str:
    """Returns `group.<project>.<name>`, a group of models."""
    return f"group.{project}.{name}"


def doc_id(project: str, name: str) -> str:
    """Returns `doc.<project>.<name>`, a docs block."""
    return f"doc.{project}.{name}"


def kind_of(node_id: str) -> str:
    """Returns the kind of a node: `SOURCE`, `SEED`, `MODEL`, `EXPOSURE`, `SINK` or `STORED`."""
    return node_id.split(".", 1)[0]


def data_test_id(project: str, model: str, name: str) -> str:
    """Returns the unique id of a data test of a model."""
    return f"{DATA_TEST}.{project}.{model}.{name}"


def view_of(node_id: str) -> str:
    """Returns the unquoted name of the temp view of a node."""
    kind, _, *parts = node_id.split(".")
    return view_name(parts) if kind == SOURCE else parts[-1]
