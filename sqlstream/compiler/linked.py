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
    exposure_id,
    exposure_inputs,
    model_id,
    parents_of,
    project_names,
    resolve_in,
    source_id,
    stored_id,
)
from sqlstream.compiler.render.rendered import Reference
from sqlstream.compiler.rewrite.bare_names import Spellings, spellings_in
from sqlstream.errors import Finding
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import ExposureInput, Project
from sqlstream.project.wording import did_you_mean, quoted


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
    """Returns the linked project, or None and the findings about references, groups and cycles."""
    enabled = {model.file.name: model for model in configured if model.config.enabled}
    rendered = {model_id(project.name, name): model.rendered.model for name, model in enabled.items()}
    names = project_names(project, enabled)
    resolved = {
        node: [resolve_in(model.file, each, project, names) for each in model.references]
        for node, model in rendered.items()
    }
    read = {**resolved, **exposure_inputs(project, names)}
    findings = [item for found in read.values() for item in found if isinstance(item, Finding)]
    findings += _parent_findings(project, enabled, names)
    findings += _group_findings(project, enabled, read)
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


def _group_findings(
    project: Project, enabled: Mapping[str, ConfiguredModel], read: Mapping[str, Sequence[str | Finding]]
) -> list[Finding]:
    """Returns a finding for each group that is not declared, and for each reference to a private model from outside of
    its group. As in dbt, exposures and models without a group are outside of every group. `read` is what each exposure
    refers to.
    """
    groups = [group.name for group in project.groups]
    findings = []
    for name, model in enabled.items():
        group = model.config.group
        if group is not None and group not in groups and model.file.rows_of is None:
            why = "the `groups:` of a YAML file in models/ declare the groups"
            message = f"the group {quoted(group)} of `{name}` is not declared"
            findings.append(
                Finding("unknown-group", message, why, did_you_mean(group, groups), model.locations["group"])
            )
    private = {name: model.config.group for name, model in enabled.items() if model.config.access == "private"}
    if not private:
        return findings
    for name, model in enabled.items():
        mine = model.config.group
        reader = f"`{name}` has {'no group' if mine is None else f'the group {quoted(mine)}'}"
        for each in model.rendered.model.references if not (model.file.rows_of or model.file.is_inline) else ():
            target = each.parts[-1] if each.kind == "ref" else ""
            if target in private and (private[target] is None or private[target] != mine):
                findings.append(_private(target, private[target], reader, f"add `{name}` to its group", each))
    ids = {model_id(project.name, name): name for name in private}
    for exposure in project.exposures:
        for item, node in zip(exposure.inputs, read[exposure_id(project.name, exposure.name)], strict=True):
            if isinstance(node, str) and node in ids:
                findings.append(_private(ids[node], private[ids[node]], "an exposure has no group", "", item))
    return list(dict.fromkeys(findings))


def _parent_findings(project: Project, enabled: Mapping[str, ConfiguredModel], names: NodeNames) -> list[Finding]:
    """Returns a finding for each other table of a data test that cannot be read."""
    views = {model_id(project.name, name): name for name, model in enabled.items() if not model.config.query_sinks}
    findings = []
    for model in enabled.values():
        for test in model.file.data_tests if model.file.rows_of is None else ():
            for found in parents_of(test, project, names):
                if isinstance(found, Finding):
                    findings.append(found)
                elif found in views:
                    what = f"`{test.name}` cannot compare with `{views[found]}`"
                    why = f"`{views[found]}` is a view: it has no sink whose rows can be read"
                    fix = f"name a model with a sink, a seed or a source{'' if test.is_generic else ' in `to`'}"
                    findings.append(Finding("data-test", what, why, fix, test.location))
    return findings


def _private(target: str, group: str | None, reader: str, fix: str, reference: Reference | ExposureInput) -> Finding:
    owned = (
        f"of the group {quoted(group)} can read it, and {reader}"
        if group
        else "of its group can read it, and it has none"
    )
    way = f"set `access: protected` for `{target}`"
    calls = reference.calls if isinstance(reference, Reference) else ()
    fix = f"{fix}, or {way}" if fix and group else way
    return Finding(
        "private-ref", f"`{target}` is private", f"only models {owned}", fix, reference.location, calls=calls
    )


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
