"""The second stage: references resolved, and the enabled models in the order of their graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.graph import Graph, NodeNames, build_graph, closure_of, project_names, resolve_reference
from sqlstream.compiler.node_ids import model_id, source_id
from sqlstream.compiler.rewrite.sql import ReadableNodes
from sqlstream.compiler.sql.bare_names import spellings_in
from sqlstream.errors import Finding
from sqlstream.project.values import Project


@dataclass(frozen=True)
class LinkedProject:
    """The enabled models by name, and their graph."""

    project: Project
    enabled: Mapping[str, ConfiguredModel]
    graph: Graph
    names: NodeNames
    inputs: ReadableNodes

    def only(self, nodes: Collection[str]) -> LinkedProject:
        """Returns the project with only the models whose ids are in `nodes`."""
        enabled = {name: model for name, model in self.enabled.items() if model_id(self.project.name, name) in nodes}
        return replace(self, enabled=enabled)


def link_models(
    project: Project, configured: Sequence[ConfiguredModel], env: Mapping[str, str]
) -> tuple[LinkedProject | None, list[Finding]]:
    """Returns the linked project, or None and the findings about unknown references and cycles."""
    enabled = {model.file.name: model for model in configured if model.config.enabled}
    rendered = {model_id(project.name, name): model.rendered.model for name, model in enabled.items()}
    names = project_names(project, enabled)
    resolved = {node: [resolve_reference(each, names) for each in model.references] for node, model in rendered.items()}
    findings = [item for found in resolved.values() for item in found if isinstance(item, Finding)]
    if findings:
        return None, findings
    parents = {node: [item for item in found if isinstance(item, str)] for node, found in resolved.items()}
    graph = build_graph(names, rendered, parents)
    if isinstance(graph, Finding):
        return None, [graph]
    streams = {source_id(project.name, table) for table in project.sources if table.mode == "stream"}
    inputs = ReadableNodes(spellings_in(project, names, env), frozenset(closure_of(graph.children, streams)))
    return LinkedProject(project, enabled, graph, names, inputs), []
