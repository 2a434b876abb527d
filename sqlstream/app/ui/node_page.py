"""What the page shows of a source, seed, view or sink beside what flows through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlstream.app.docs.declared_pages import seed_entry, sink_entry, source_entry
from sqlstream.app.ui.project_view import SeenProject
from sqlstream.app.ui.query_page import described, model_columns
from sqlstream.app.ui.shape import Node, ProjectShape
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import seed_id, sink_id, source_id


def node_page(seen: SeenProject, node: Node) -> dict[str, Any]:
    """Returns what is known about a node: its columns, settings and neighbors, the SQL of a model, and the queries that
    use it. Of a project that does not compile, only what its last manifest has; `problem` says so.
    """
    page = {
        **node.as_json(),
        "description_html": "",
        "path": None,
        "line": None,
        "columns": None,
        "config": {},
        "raw_sql": None,
        "compiled_sql": None,
        "guarantees": [],
        "problem": None,
        "reads": _nodes(seen.shape, (parent for parent, child in seen.shape.edges if child == node.unique_id)),
        "read_by": _nodes(seen.shape, (child for parent, child in seen.shape.edges if parent == node.unique_id)),
        "queries": [query.model for query in seen.shape.queries.values() if node.unique_id in query.nodes],
    }
    if node.model is not None:
        return page | _model(seen.manifest["nodes"][node.unique_id])
    entry = None if seen.loaded is None else _declared(seen.loaded.compiled, node)
    if entry is None:
        return page | {"problem": "the project does not compile, so its columns and settings are not known"}
    return page | {key: entry[key] for key in page.keys() & entry.keys() - node.as_json().keys()} | _described(entry)


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the descriptions of an entry of the documentation site, which are HTML."""
    columns = entry.get("columns")
    return {
        "description_html": entry["description"],
        "columns": columns and [{**column, "description_html": column["description"]} for column in columns],
    }


def _nodes(shape: ProjectShape, ids: Iterator[str]) -> list[dict[str, Any]]:
    known = {node.unique_id: node for node in shape.nodes}
    return [known[each].as_json() for each in dict.fromkeys(ids) if each in known]


def _model(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **described(entry["description"]),
        "path": entry["path"],
        "columns": list(model_columns(entry)),
        "raw_sql": entry["raw_code"],
        "compiled_sql": entry["compiled_sql"],
    }


def _declared(compiled: CompiledProject, node: Node) -> dict[str, Any] | None:
    """Returns the entry of a source, seed or sink as the documentation site has it."""
    project = compiled.project
    for table in project.sources:
        if source_id(project.name, table) == node.unique_id:
            return source_entry(table, compiled)
    for seed in project.seeds:
        if seed_id(project.name, seed.name) == node.unique_id:
            return seed_entry(seed, compiled)
    for sink in project.sinks:
        if sink_id(project.name, sink.name) == node.unique_id:
            return sink_entry(sink, compiled, ())
    return None
