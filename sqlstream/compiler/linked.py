"""The second stage: references resolved, and the enabled models in the order of their graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.graph import (
    Graph,
    NodeNames,
    build_graph,
    closure_of,
    exposure_inputs,
    model_id,
    project_names,
    resolve_reference,
    source_id,
    stored_id,
)
from sqlstream.compiler.rewrite.bare_names import Spellings, spellings_in
from sqlstream.errors import Finding
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import Project


@dataclass(frozen=True)
class LinkedProject:
    """The enabled models by name, and their graph.

    `spellings` are the ways to write each input, `streaming` the nodes that stream, and `stored` the ids of the stored
    outputs by the ids of their models.
    """

    project: Project
    enabled: Mapping[str, ConfiguredModel]
    graph: Graph
    names: NodeNames
    spellings: Spellings
    streaming: frozenset[str]
    stored: Mapping[str, str] = field(default_factory=dict)

    def inputs_of(self, nodes: Sequence[str]) -> list[str]:
        """Returns what a query reads for references to `nodes`: the stored output of a model that has one."""
        return [self.stored.get(node, node) for node in nodes]


def link_models(
    project: Project, configured: Sequence[ConfiguredModel], env: Mapping[str, str]
) -> tuple[LinkedProject | None, list[Finding]]:
    """Returns the linked project, or None and the findings about unknown references and cycles."""
    enabled = {model.file.name: model for model in configured if model.config.enabled}
    rendered = {model_id(project.name, name): model.rendered.model for name, model in enabled.items()}
    names = project_names(project, enabled)
    resolved = {node: [resolve_reference(each, names) for each in model.references] for node, model in rendered.items()}
    read = {**resolved, **exposure_inputs(project, names)}
    findings = [item for found in read.values() for item in found if isinstance(item, Finding)]
    if findings:
        return None, findings
    parents = {node: [item for item in found if isinstance(item, str)] for node, found in read.items()}
    graph = build_graph(names, rendered, parents)
    if isinstance(graph, Finding):
        return None, [graph]
    stored = {
        model_id(project.name, name): stored_id(project.name, name)
        for name, model in enabled.items()
        if model.config.is_stored
    }
    formats = {sink.name: format_of(sink.format) for sink in project.sinks}
    growing = {
        model_id(project.name, name)
        for name, model in enabled.items()
        if (format_ := formats.get(model.config.sink_name or "")) is not None
        and format_.keeps_rows(model.config.output_mode, model.config.unique_key)
    }
    spellings, streams = spellings_in(project, names, env), _streams(project, graph, stored, growing)
    return LinkedProject(project, enabled, graph, names, spellings, streams, stored), []


def _streams(project: Project, graph: Graph, stored: Mapping[str, str], growing: Collection[str]) -> frozenset[str]:
    """Returns the sources, models and stored outputs that stream. `growing` are the models whose outputs only grow:
    other stored outputs are static tables.
    """
    sources = {source_id(project.name, table) for table in project.sources if table.mode == "stream"}
    if not stored:
        return frozenset(closure_of(graph.children, sources))
    streams = set(sources)
    for node in graph.order:
        if any(stored.get(parent, parent) in streams for parent in graph.parents[node]):
            streams |= {node, stored[node]} if node in stored and node in growing else {node}
    return frozenset(streams)
