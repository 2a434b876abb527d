"""What the live page shows of one query, source, seed, view or sink beside its time series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlstream.app.compile.emission_text import emission_text
from sqlstream.app.compile.explain_model import Explanation
from sqlstream.app.docs.declared_pages import seed_entry, sink_entry, source_entry
from sqlstream.app.loading.load import Loaded
from sqlstream.app.plan.compiled_identity import ParallelQueries
from sqlstream.app.plan.details import removed_queries
from sqlstream.app.plan.plan_text import verdict_json
from sqlstream.app.plan.without_spark import plan_without_spark
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import readable_storage
from sqlstream.app.status.lags import progress_without_spark
from sqlstream.app.status.lags_text import progress_json
from sqlstream.app.test.case_results import read_results
from sqlstream.app.test.unit_tests import unit_tests_of
from sqlstream.app.ui.project_view import SeenProject
from sqlstream.app.ui.shape import Node, ProjectShape, QueryShape
from sqlstream.app.versions.stored_versions import stored_versions
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import kind_of, seed_id, sink_id, source_id
from sqlstream.compiler.spark_findings import is_about
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest
from sqlstream.report.findings import findings_json
from sqlstream.web.site.markdown import markdown_html

SOURCE_KEYS = ("format", "mode", "path", "table", "watermark", "on_corrupt", "schema_changes")

UNKNOWN_SETTINGS = "The project does not compile, so columns and settings are not known. The overview lists the errors."
"""What the page of a source, seed or sink says instead of them."""


def query_page(seen: SeenProject, request: ProjectRequest, query: QueryShape) -> dict[str, Any]:
    """Returns what is known about a query: its SQL, columns, findings, checkpoint, plan and unit tests.

    Parts that cannot be read are None; `problems` has the reasons.
    """
    entry, nodes = query.entry, seen.manifest.get("nodes", {})
    views = [node for node in sorted(query.nodes) if kind_of(node) == "model" and node in nodes]
    page: dict[str, Any] = {
        "model": query.model,
        "unique_id": query.unique_id,
        **described(entry["description"]),
        "path": entry["path"],
        "raw_sql": entry["raw_code"],
        "compiled_sql": entry["compiled_sql"],
        "columns": list(model_columns(entry)),
        "sources": list(_sources(seen.manifest, query)),
        "views": [{"unique_id": node, "name": nodes[node]["name"], "path": nodes[node]["path"]} for node in views],
        "config": entry["config"],
        "outputs": [entry["output"], *entry["further_outputs"]],
        "depends_on": entry["depends_on"],
        "read_by": list(seen.manifest.get("child_map", {}).get(query.unique_id, ())),
        "findings": [],
        "problems": [],
    }
    page |= dict.fromkeys(("emission", "versions", "checkpoint", "plan", "tests"))
    if seen.loaded is None:
        page["problems"].append("the project does not compile, so this is the state of its last compilation")
        return page
    _add_compiled(page, seen, request, seen.loaded, seen.loaded.compiled.models[query.unique_id])
    return page


def _add_compiled(
    page: dict[str, Any], seen: SeenProject, request: ProjectRequest, loaded: Loaded, model: CompiledModel
) -> None:
    page["findings"] = findings_json(finding for finding in seen.findings if is_about(loaded.compiled, finding, model))
    parts: Mapping[str, Callable[[], Any]] = {
        "emission": lambda: _emission(loaded, model),
        "tests": lambda: list(_tests(loaded, request, model.name)),
        **_stored_parts(loaded, model),
    }
    for name, read in parts.items():
        try:
            page[name] = read()
        except (OSError, UsageError) as error:
            page["problems"].append(f"{name}: {error}")
        except FindingsError as error:
            page["problems"].append(f"{name}: {error.findings[0].head}")
    if len(parts) == 2:  # without `_stored_parts`
        storage = loaded.compiled.project.target.storage
        page["problems"].append(f"the checkpoints are in {storage}, which only Spark can read")


def _stored_parts(loaded: Loaded, model: CompiledModel) -> dict[str, Callable[[], Any]]:
    """Returns the readers of what is in the storage, none if only Spark can read the storage."""
    storage = readable_storage(loaded)
    if storage is None:
        return {}
    root = storage.root_of(model)
    beside = ParallelQueries(loaded.compiled, (), storage.of, storage.base)
    return {
        "versions": lambda: asdict(stored_versions(storage.of, root, model.name))["versions"],
        "checkpoint": lambda: progress_json(progress_without_spark(storage, [model]), datetime.now(UTC))[0],
        "plan": lambda: verdict_json(
            plan_without_spark(loaded, storage, model, beside, removed_queries(loaded, storage.of, storage.base))
        ),
    }


def model_columns(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the columns of a model in a manifest, with the columns of sources from which each comes."""
    declared = {name.lower(): column for name, column in entry["columns"].items()}
    found = entry["output_columns"]
    if found is None:
        found = [{"name": name, "watermark": None, "origins": []} for name in entry["columns"]]
    for column in found:
        known = declared.get(column["name"].lower(), {})
        yield {
            "name": column["name"],
            "data_type": column.get("data_type") or known.get("data_type"),
            **described(known.get("description")),
            "watermark": column["watermark"],
            "origins": [{**origin, "name": shown_name(origin["unique_id"])} for origin in column["origins"]],
        }


def shown_name(node: str) -> str:
    """Returns a source as `source.table`, another node by its name."""
    return node.split(".", 2)[-1]


def _sources(manifest: Mapping[str, Any], query: QueryShape) -> Iterator[dict[str, Any]]:
    every = {**manifest.get("nodes", {}), **manifest["sources"]}
    for node in sorted({table for tables in query.edges.values() for table in tables}):
        entry = every.get(node, {})
        found = {key: entry.get(key) for key in SOURCE_KEYS}
        yield {
            "unique_id": node,
            "name": shown_name(node),
            "kind": kind_of(node),
            **found,
            **described(entry.get("description")),
        }


def described(description: str | None) -> dict[str, str]:
    """Returns a description as it is written, and as HTML."""
    text = description or ""
    return {"description": text, "description_html": markdown_html(text)}


def _emission(loaded: Loaded, model: CompiledModel) -> str:
    from sqlstream.compiler.trees import emission_of_query, reads_of_query  # loads sqlglot, for the page of a query

    compiled = loaded.compiled
    emission, reads = emission_of_query(compiled, model), reads_of_query(compiled, model)
    foreseen = rules_apply(compiled.project.target)
    found = Explanation(compiled, model, emission, reads, (), foreseen)
    return emission_text(model, emission, found.locate, reads, is_foreseen=foreseen)


def _tests(loaded: Loaded, request: ProjectRequest, model: str) -> Iterator[dict[str, Any]]:
    """Yields the unit tests of a model with their last results; `status` is None if a test has not run."""
    tests, results = unit_tests_of(loaded, request), read_results(loaded.target_folder)
    every: tuple[UnitTest | BrokenTest, ...] = (*tests.cases, *tests.broken)
    for test in every:
        if test.model == model:
            last = results.get(f"{model}.{test.name}", {})
            found = {key: last.get(key) for key in ("status", "at", "seconds", "message")}
            yield {"name": test.name, "location": str(test.location), **found}


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
        return page | _model_parts(seen.manifest["nodes"][node.unique_id])
    entry = None if seen.loaded is None else _declared(seen.loaded.compiled, node)
    if entry is None:
        return page | {"problem": UNKNOWN_SETTINGS}
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


def _model_parts(entry: Mapping[str, Any]) -> dict[str, Any]:
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
