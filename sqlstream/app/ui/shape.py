"""The graph of a project as the page shows it, from a manifest: nodes, edges, and what each query reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from sqlstream.compiler.graph import SINK, SOURCE, kind_of, sink_id
from sqlstream.project.declarations.on_corrupt import CORRUPT_SUFFIX

Manifest = Mapping[str, Any]
Edge = tuple[str, str]


@dataclass(frozen=True)
class Node:
    """A node of the graph. `kind` is `source`, `seed`, `view`, `query` or `sink`; `model` is the name of a model."""

    unique_id: str
    kind: str
    name: str
    folder: str
    tags: tuple[str, ...] = ()
    model: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the node as plain values, without its status."""
        return {
            "id": self.unique_id,
            "kind": self.kind,
            "name": self.name,
            "folder": self.folder,
            "tags": list(self.tags),
            "model": self.model,
        }


@dataclass(frozen=True)
class QueryShape:
    """A query: its model's entry in the manifest, its `sinks`, the `edges` on the way from its sources, each with the
    tables whose rows flow there, and the models that write the corrupt records of its sources. `streams` are the
    entries of the sources that it reads as streams; there are none if it also reads stored outputs.
    """

    model: str
    unique_id: str
    entry: Manifest
    sinks: tuple[str, ...]
    edges: Mapping[Edge, frozenset[str]]
    quarantines: tuple[str, ...] = ()
    streams: tuple[Manifest, ...] = ()

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes upstream of the query that it reads or computes, and its sinks."""
        return frozenset(node for edge in self.edges for node in edge) - {self.unique_id} | set(self.sinks)


@dataclass(frozen=True)
class ProjectShape:
    """The graph of a project, with its queries by the names of their models."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    queries: Mapping[str, QueryShape] = field(default_factory=dict)

    @cached_property
    def guarded(self) -> Mapping[str, tuple[str, ...]]:
        """The queries whose sources' corrupt records a model writes, by the name of that model."""
        found: dict[str, tuple[str, ...]] = {}
        for query in self.queries.values():
            for name in query.quarantines:
                found[name] = (*found.get(name, ()), query.model)
        return found


def shape_of(manifest: Manifest) -> ProjectShape:
    """Returns the graph in a manifest."""
    return _Builder(manifest).build()


class _Builder:
    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._project = str(manifest["metadata"]["project_name"])
        self._models = {node: entry for node, entry in manifest["nodes"].items() if entry["resource_type"] == "model"}
        self._parents: Mapping[str, list[str]] = manifest["parent_map"]

    def build(self) -> ProjectShape:
        queries = {entry["name"]: self._query(node, entry) for node, entry in self._models.items() if entry["output"]}
        edges = [(parent, node) for node, parents in self._parents.items() for parent in parents]
        edges += [(query.unique_id, sink) for query in queries.values() for sink in query.sinks]
        used = {node for edge in edges for node in edge}
        nodes = [node for node in self._nodes() if node.kind != SINK or node.unique_id in used]
        known = {node.unique_id for node in nodes}
        found = tuple(edge for edge in dict.fromkeys(edges) if known.issuperset(edge))
        return ProjectShape(tuple(nodes), found, queries)

    def _nodes(self) -> Iterator[Node]:
        for node, entry in self._manifest["sources"].items():
            tags = tuple(entry.get("tags") or ())
            yield Node(node, SOURCE, f"{entry['source_name']}.{entry['name']}", entry["source_name"], tags)
        for node, entry in self._manifest["nodes"].items():
            if entry["resource_type"] == "seed":
                yield Node(node, "seed", entry["name"], "seeds")
            else:
                kind = "query" if entry["output"] else "view"
                folder = "/".join(PurePosixPath(entry["path"]).parent.parts[1:])
                yield Node(node, kind, entry["name"], folder, tuple(entry["tags"]), entry["name"])
        for node, entry in self._manifest["sinks"].items():
            yield Node(node, SINK, entry["name"], "", tuple(entry.get("tags") or ()))

    def _query(self, node: str, entry: Manifest) -> QueryShape:
        outputs = [entry["output"], *entry.get("further_outputs", ())]
        sinks = tuple(dict.fromkeys(sink_id(self._project, output["sink"]) for output in outputs))
        edges: dict[Edge, frozenset[str]] = {}
        self._add_edges(node, edges, {})
        sources = {edge[0] for edge in edges}
        known, tables = self._manifest["sources"], frozenset[str]().union(*edges.values())
        streams = tuple(known[each] for each in sorted(tables & known.keys()) if known[each].get("mode") == "stream")
        streams = () if tables & self._models.keys() else streams
        return QueryShape(entry["name"], node, entry, sinks, edges, tuple(self._quarantines(sources)), streams)

    def _add_edges(
        self, node: str, edges: dict[Edge, frozenset[str]], known: dict[str, frozenset[str]]
    ) -> frozenset[str]:
        """Adds the edges above `node` and returns the tables whose rows arrive there."""
        if node in known:
            return known[node]
        known[node] = frozenset()  # a graph has no cycle, but a file can be edited
        arrived: set[str] = set()
        reads = self._models.get(node, {}).get("reads", {})
        for parent in self._parents.get(node, ()):
            model = self._models.get(parent)
            if model is None or reads.get(model["name"]) == "stored":
                tables = frozenset([parent])
            else:
                tables = self._add_edges(parent, edges, known)
            edges[parent, node] = tables
            arrived |= tables
        known[node] = frozenset(arrived)
        return known[node]

    def _quarantines(self, read: set[str]) -> Iterator[str]:
        """Yields the models that write the corrupt records of the sources among `read`."""
        for node, entry in self._models.items():
            for parent in self._parents.get(node, ()):
                is_corrupt = kind_of(parent) == SOURCE and parent.endswith(CORRUPT_SUFFIX)
                if is_corrupt and parent.removesuffix(CORRUPT_SUFFIX) in read:
                    yield str(entry["name"])
