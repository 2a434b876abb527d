"""`sqlstream ls`: lists the selected nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.loading.selected_queries import in_shard, with_added_queries
from sqlstream.app.loading.selecting import SelectableTest, names_tests, select, terminal_among
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import DATA_TEST, EXPOSURE, SEED, SINK, SOURCE, UNIT_TEST, kind_of, sink_id
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.compiler.rules.rule import terminal_models
from sqlstream.errors import Finding
from sqlstream.project.formats.guarantees import guarantee_of, modes_of


@dataclass(frozen=True)
class NodeListing:
    """The selected nodes, parents first. `names` are in dbt's form (`project.folder.model`,
    `source:project.source.table`, `exposure:project.name`). `entries` are the nodes' entries in the manifest, with
    their `unique_id`.
    """

    names: tuple[str, ...]
    entries: tuple[Mapping[str, Any], ...]
    warnings: tuple[Finding, ...]


def list_nodes(request: ProjectRequest, selection: Selection = EVERYTHING) -> NodeListing:
    """Returns the selected nodes, even if rules refuse a model. Includes unit tests, data tests and sinks only if the
    selection asks for their resource type, and data tests also if a criterion of it is `test_name:`. With a shard,
    these are the queries that a run starts.

    Raises: FindingsError, also for unit test files that cannot be read, if tests are included.
    """
    tests: tuple[SelectableTest, ...] = ()
    if UNIT_TEST in selection.resource_types:
        from sqlstream.app.test.unit_tests import open_tests  # loads all that runs and prints tests

        tested = open_tests(request)
        tested.check_readable()
        loaded, tests = tested.loaded, tested.nodes
    else:
        loaded = load_for_reading(request)
    if DATA_TEST in selection.resource_types or names_tests(loaded.compiled, selection):
        from sqlstream.app.data_tests.selectable_tests import selectable_tests  # not of each `ls`

        tests = (*tests, *selectable_tests(loaded.compiled))
    chosen, unmatched = _choose(loaded.compiled, selection, tests)
    if selection.shard is not None:
        models = with_added_queries(loaded.compiled, terminal_among(loaded.compiled, chosen), selection)
        chosen = tuple(model.unique_id for model in in_shard(models, selection))
    warnings = findings_of_selection(loaded.compiled, loaded.warnings, chosen)
    manifest = build_manifest(loaded.compiled, generated_at="", invocation_id="")
    sinks = {node: {**entry, "guarantees": _guarantees(entry["format"])} for node, entry in manifest["sinks"].items()}
    every = {
        **manifest["nodes"],
        **manifest["sources"],
        **manifest["exposures"],
        **{test.node.unique_id: _entry(test) for test in tests},
        **sinks,
    }
    names = [_shown(node, every[node]) for node in chosen]
    entries = [{"unique_id": node, **every[node]} for node in chosen]
    return NodeListing(tuple(names), tuple(entries), (*warnings, *unmatched))


def _choose(
    compiled: CompiledProject, selection: Selection, tests: Sequence[SelectableTest]
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Returns the selected nodes; for the resource type `sink` also the sinks of the selected models."""
    if SINK not in selection.resource_types:
        return select(compiled, selection, tests)
    every, unmatched = select(compiled, replace(selection, resource_types=()), tests)
    used = {output.sink for model, output in terminal_models(compiled) if model.unique_id in every}
    is_whole = set(compiled.graph.order) <= set(every)
    name, sinks = compiled.project.name, compiled.project.sinks
    chosen = [node for node in every if kind_of(node) in selection.resource_types]
    chosen += [sink_id(name, sink.name) for sink in sinks if is_whole or sink.name in used]
    return tuple(chosen), unmatched


def _guarantees(format_name: str) -> dict[str, Any]:
    """Returns the guarantee of a sink for each mode of a query."""
    return {mode: vars(guarantee_of(format_name, mode)) for mode in modes_of(format_name)}


def _entry(test: SelectableTest) -> Mapping[str, Any]:
    """Returns the entry of a unit test as in dbt's manifest, without its rows, or of a data test."""
    node = test.node
    return {
        "resource_type": node.resource_type,
        "package_name": node.fqn[0],
        "original_file_path": node.path,
        "name": node.name,
        "model": node.fqn[-2],
        "fqn": list(node.fqn),
        "tags": sorted(node.tags),
        "config": node.config,
        "depends_on": {"nodes": [test.source or test.model]},
        **({"test_metadata": {"name": node.kind}} if node.kind else {}),
    }


def _shown(unique_id: str, entry: Mapping[str, Any]) -> str:
    kind, _, named = unique_id.partition(".")
    if kind in (SOURCE, EXPOSURE, SINK):
        return f"{kind}:{named}"
    if kind == SEED:
        return named
    if kind == DATA_TEST:
        return f"{DATA_TEST}:{'.'.join(entry['fqn'][-2:])}"
    if kind == UNIT_TEST:
        return f"{UNIT_TEST}:{'.'.join(entry['fqn'][-2:])}"
    return ".".join(entry["fqn"])
