"""`sqlstream ls`: the nodes that a selection names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlstream.app.loading import look_at
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.selecting import select
from sqlstream.compiler.manifest import build_manifest
from sqlstream.compiler.node_ids import SEED, SOURCE
from sqlstream.errors import Finding


@dataclass(frozen=True)
class Listing:
    """The selected nodes, parents first: `names` as dbt prints them (`project.folder.model`,
    `source:project.source.table`), and `entries`, the manifest's entry of each with its `unique_id`.
    """

    names: tuple[str, ...]
    entries: tuple[Mapping[str, Any], ...]
    warnings: tuple[Finding, ...]


def list_nodes(request: ProjectRequest, selection: Selection = EVERYTHING) -> Listing:
    """Returns the selected nodes, also of a project whose SQL rules refuse. Raises: FindingsError."""
    loaded = look_at(request)
    chosen, unmatched = select(loaded.compiled, selection)
    manifest = build_manifest(loaded.compiled, generated_at="", invocation_id="")
    every = {**manifest["nodes"], **manifest["sources"]}
    names = [_shown(node, every[node]) for node in chosen]
    entries = [{"unique_id": node, **every[node]} for node in chosen]
    return Listing(tuple(names), tuple(entries), (*loaded.warnings, *unmatched))


def _shown(unique_id: str, entry: Mapping[str, Any]) -> str:
    kind, _, named = unique_id.partition(".")
    if kind == SOURCE:
        return f"source:{named}"
    if kind == SEED:
        return named
    return ".".join(entry["fqn"])
