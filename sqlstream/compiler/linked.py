"""The second stage: references resolved, and the enabled models put in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.graph import Graph, NodeNames, build_graph, project_names, resolve_reference
from sqlstream.compiler.node_ids import model_id, source_id
from sqlstream.compiler.rewrite.sql import ReadableNodes
from sqlstream.compiler.sql.bare_names import spellings_in
from sqlstream.errors import Finding
from sqlstream.project.values import Project


@dataclass(frozen=True)
class LinkedProject:
    """The enabled models by name, with their graph: all that is known before any SQL is looked into."""

    project: Project
    enabled: Mapping[str, ConfiguredModel]
    graph: Graph
    names: NodeNames
    inputs: ReadableNodes

    def only(self, nodes: Collection[str]) -> LinkedProject:
        """Returns the project with those of its models whose ids are among `nodes`."""
        enabled = {name: model for name, model in self.enabled.items() if model_id(self.project.name, name) in nodes}
        return replace(self, enabled=enabled)


def link_models(
    project: Project, configured: Sequence[ConfiguredModel], env: Mapping[str, str]
) -> tuple[LinkedProject | None, list[Finding]]:
    """Returns the linked project, None where a reference leads nowhere or in a circle, and the findings."""
    enabled = {model.rendered.model.file.name: model for model in configured if model.config.enabled}
    names = project_names(project, enabled)
    findings: list[Finding] = []
    parents: dict[str, list[str]] = {}
    for name, model in enabled.items():
        found = [resolve_reference(reference, names) for reference in model.rendered.model.references]
        findings += [item for item in found if isinstance(item, Finding)]
        parents[model_id(project.name, name)] = [item for item in found if isinstance(item, str)]
    if findings:
        return None, findings
    rendered = {model_id(project.name, name): model.rendered.model for name, model in enabled.items()}
    graph = build_graph(names, rendered, parents)
    if isinstance(graph, Finding):
        return None, [graph]
    inputs = ReadableNodes(spellings_in(project, names, env), _streaming_nodes(project, graph))
    return LinkedProject(project, enabled, graph, names, inputs), []


def _streaming_nodes(project: Project, graph: Graph) -> frozenset[str]:
    """The nodes with a stream among their ancestors, or that are one."""
    streams = {source_id(project.name, table) for table in project.sources if table.mode == "stream"}
    for node in graph.order:
        if any(parent in streams for parent in graph.parents[node]):
            streams.add(node)
    return frozenset(streams)
