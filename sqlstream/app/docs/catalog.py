"""What the documentation site shows, as plain data: one entry for each node, and the project."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlstream.app.docs.declared_pages import (
    exposure_entry,
    function_entry,
    macro_entries,
    seed_entry,
    sink_entry,
    source_entry,
    test_entries,
)
from sqlstream.app.docs.model_pages import ModelPages
from sqlstream.app.loading.selectable import selectable_nodes
from sqlstream.app.test.unit_tests import TestedProject
from sqlstream.compiler.graph import seed_id, sink_id, source_id
from sqlstream.compiler.selection.select import SelectableNode
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.docs_blocks import OVERVIEW
from sqlstream.version import __version__
from sqlstream.web.site.markdown import markdown_html


def build_catalog(
    tested: TestedProject, chosen: Collection[str], generated_at: str, live: str | None = None
) -> dict[str, Any]:
    """Returns the data of the site for the nodes `chosen`, with the sinks that they write and their unit tests.

    `project` describes the project, `nodes` has an entry for each node by unique id, `edges` are pairs of ids from
    source to sink, and `selectable` has what selectors match, for the nodes that commands can select. `live` is the
    address of the live page, relative to that of the site or with a host (default: `ui_url` of the target).
    """
    compiled = tested.loaded.compiled
    nodes = dict(_entries(tested, frozenset(chosen)))
    _add_links(nodes)
    return {
        "project": _project(tested, generated_at, live),
        "nodes": nodes,
        "edges": [[parent, node] for node, entry in nodes.items() for parent in entry.get("depends_on", ())],
        "selectable": {node: _selectable(item) for node, item in selectable_nodes(compiled).items() if node in nodes},
    }


def _project(tested: TestedProject, generated_at: str, live: str | None) -> dict[str, Any]:
    project = tested.loaded.compiled.project
    declared = f"{project.target.ui_url.rstrip('/')}/" if project.target.ui_url else None
    overview = next((block.text for block in project.docs if block.name == OVERVIEW), "")
    return {
        "name": project.name,
        "version": project.version,
        "target": project.target.name,
        "sqlstream_version": __version__,
        "generated_at": generated_at,
        "live": declared if live is None else live,
        "overview": markdown_html(overview),
        "findings": [finding_entry(finding) for finding in tested.attempt.findings],
    }


def _entries(tested: TestedProject, chosen: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the id and the entry of each node, parents first."""
    compiled = tested.loaded.compiled
    project = compiled.project
    found = NodeFindings(tested.attempt.findings)
    tables = {source_id(project.name, table): table for table in project.sources}
    seeds = {seed_id(project.name, seed.name): seed for seed in project.seeds}
    exposures = compiled.exposures
    pages = ModelPages(compiled, tested.attempt, chosen)
    written: dict[str, None] = {}
    for node in (node for node in compiled.graph.order if node in chosen):
        if node in compiled.models:
            model = compiled.models[node]
            written |= {sink_id(project.name, output.sink): None for output in model.outputs}
            yield node, {**pages.entry(model), "findings": found.of_file(model.file.path)}
        elif node in tables:
            yield node, {**source_entry(tables[node], compiled), "findings": found.near(tables[node].location)}
        elif node in exposures:
            yield node, {**exposure_entry(node, compiled), "findings": found.near(exposures[node].location)}
        else:
            yield node, {**seed_entry(seeds[node], compiled), "findings": found.of_file(seeds[node].path)}
    whole = set(compiled.graph.order) <= chosen
    for sink in project.sinks:
        node = sink_id(project.name, sink.name)
        if whole or node in written:
            yield node, {**sink_entry(sink, compiled, chosen), "findings": found.near(sink.location)}
    yield from test_entries(tested, chosen)
    if whole:
        yield from macro_entries(project)
        for function in project.functions:
            yield function_entry(project.name, function)


def _add_links(nodes: Mapping[str, dict[str, Any]]) -> None:
    """Adds to each entry what depends on it, and leaves out links to nodes that the site does not have."""
    for entry in nodes.values():
        entry["depends_on"] = [node for node in entry.get("depends_on", ()) if node in nodes]
    for node, entry in nodes.items():
        for parent in entry["depends_on"]:
            nodes[parent].setdefault("read_by", []).append(node)


def _selectable(node: SelectableNode) -> dict[str, Any]:
    return {
        "resource_type": node.resource_type,
        "name": node.name,
        "fqn": list(node.fqn),
        "path": node.path,
        "tags": sorted(node.tags),
        "config": node.config,
        "sinks": list(node.sinks),
        "source_name": node.source_name,
        "properties_path": node.properties_path,
        "version": None if node.version is None else asdict(node.version),
    }


class NodeFindings:
    """Finds the findings of a node by their locations."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._by_file: dict[str, list[Finding]] = {}
        for finding in findings:
            for path in {place.path for place in (finding.location, *finding.calls) if place is not None}:
                self._by_file.setdefault(path, []).append(finding)

    def of_file(self, path: str) -> list[dict[str, Any]]:
        """Returns the findings in a file that declares one node."""
        return [finding_entry(finding) for finding in self._by_file.get(path, ())]

    def near(self, location: Location) -> list[dict[str, Any]]:
        """Returns the findings at the line that declares a node."""
        found = self._by_file.get(location.path, ())
        return [finding_entry(item) for item in found if item.location and item.location.line == location.line]


def finding_entry(finding: Finding) -> dict[str, Any]:
    """Returns a finding with the texts that the site shows."""
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "why": finding.why,
        "fix": finding.fix,
        "location": str(finding.location) if finding.location else None,
    }
