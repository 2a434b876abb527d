"""The contents of target/manifest.json, built from a compiled project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import doc_id, group_id, seed_id, sink_id, source_id
from sqlstream.compiler.rewrite.data_tests import described
from sqlstream.project.configuration.docs_blocks import DocsBlock
from sqlstream.project.configuration.documents import DeclaredColumn
from sqlstream.project.configuration.properties import Constraint
from sqlstream.project.files.files import checksum
from sqlstream.project.values import Exposure, Group, RecordFormat, Seed, Sink, SourceTable
from sqlstream.version import __version__

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest

MANIFEST_VERSION = 2
"""The format of manifest.json."""


def build_manifest(compiled: CompiledProject, *, generated_at: str, invocation_id: str) -> dict[str, Any]:
    """Returns the manifest as plain data.

    Its keys are `metadata`, `nodes` (models and seeds), `sources`, `sinks`, `exposures`, `groups` and `docs` by id,
    `macro_files` by path, `functions` (Python functions with digests of their modules), `vars` of project.yml,
    `parent_map` and `child_map`.

    Option values with secrets show only the name of the variable. `raw_code`, `unrendered_config`, `macro_files` and
    `vars` are unrendered, so they are the same in every environment.
    """
    project = compiled.project
    seeds = {seed_id(project.name, seed.name): _seed(seed) for seed in project.seeds}
    return {
        "metadata": {
            "manifest_version": MANIFEST_VERSION,
            "sqlstream_version": __version__,
            "generated_at": generated_at,
            "invocation_id": invocation_id,
            "project_name": project.name,
            "target": project.target.name,
        },
        "nodes": {unique_id: _model(compiled, model) for unique_id, model in compiled.models.items()} | seeds,
        "sources": {source_id(project.name, table): _source(table) for table in project.sources},
        "sinks": {sink_id(project.name, sink.name): _sink(sink) for sink in project.sinks},
        "exposures": {node: _exposure(compiled, node, each) for node, each in compiled.exposures.items()},
        "groups": {group_id(project.name, group.name): _group(compiled, group) for group in project.groups},
        "docs": {doc_id(project.name, block.name): _docs_block(block) for block in project.docs},
        "macro_files": {macro.path: macro.text for macro in project.macros},
        "functions": {function.name: function.digest for function in project.functions},
        "vars": dict(project.written_vars),
        "parent_map": {node: list(parents) for node, parents in compiled.graph.parents.items()},
        "child_map": {node: list(children) for node, children in compiled.graph.children.items()},
    }


def _model(compiled: CompiledProject, model: CompiledModel) -> dict[str, Any]:
    quarantine, late_rows = compiled.quarantines.get(model.unique_id), compiled.late_rows.get(model.unique_id)
    return {
        "resource_type": "model",
        "name": model.name,
        "path": model.file.path,
        "fqn": [compiled.project.name, *model.file.folders, *model.file.name_words],
        "description": model.file.description,
        "columns": _columns(model.file.columns),
        "output_columns": output_columns(compiled.columns.get(model.unique_id)),
        "checksum": checksum(model.file.text),
        "raw_code": model.file.text,
        "config": model.config.plain(),
        "unrendered_config": dict(model.file.written),
        "tags": list(model.config.tags),
        "contract": {"enforced": model.config.contract.enforced},
        "constraints": [_constraint(constraint) for constraint in model.file.constraints],
        "data_tests": [_data_test(test) for test in model.file.data_tests],
        "access": model.config.access,
        "group": model.config.group,
        "version": None if model.file.version is None else model.file.version.v,
        "version_of": None if model.file.version is None else model.file.version.name,
        "is_latest_version": model.file.version is None or model.file.version.is_latest,
        "deprecation_date": None if model.file.deprecated is None else str(model.file.deprecated.value),
        "streaming": model.streaming,
        "output": None if model.output is None else _output(model.output),
        "further_outputs": [_output(output) for output in model.also],
        "quarantine": None if quarantine is None else _output(quarantine.outputs[0]),
        "late_rows": None if late_rows is None else _output(late_rows.outputs[0]),
        "depends_on": list(compiled.graph.parents[model.unique_id]),
        "reads": {name: "stored" if stored else "view" for name, stored in compiled.models_read(model).items()},
        "compiled_path": model.compiled_path,
        "compiled_sql": model.sql,
    }


def _output(output: Output) -> dict[str, Any]:
    return {
        "sink": output.sink,
        "format": output.format,
        "path": output.path,
        "table": output.table,
        "function": output.python,
        **_record(output.record),
        "partition_by": list(output.partition_by),
        "files_per_batch": output.files_per_batch,
        "options": {name: str(value) for name, value in output.options.items()},
    }


def _seed(seed: Seed) -> dict[str, Any]:
    return {
        "resource_type": "seed",
        "name": seed.name,
        "path": seed.path,
        "checksum": seed.checksum,
        "unrendered_config": dict(seed.written),
        "description": seed.description,
        "columns": _columns(seed.columns),
    }


def _source(table: SourceTable) -> dict[str, Any]:
    watermark = table.watermark
    return {
        "resource_type": "source",
        "source_name": table.source,
        "name": table.name,
        "unrendered_config": dict(table.written),
        "format": table.format,
        "path": table.path,
        "table": table.table,
        "class": table.python,
        "mode": table.mode,
        "changes": table.changes,
        "value_format": None if table.messages is None else table.messages.value_format,
        "key_format": None if table.messages is None else table.messages.key_format,
        "on_corrupt": table.on_corrupt,
        "quarantine_sink": table.quarantine_sink,
        "refresh": table.refresh,
        "schema_changes": table.schema_changes,
        "timestamp_unit": table.timestamp_unit,
        "max_event_time": table.max_event_time,
        "freshness": None if table.freshness is None else table.freshness.criteria,
        "loaded_at_field": None if table.freshness is None else table.loaded_at_field,
        "schema": None if table.spark_schema is None else table.spark_schema.ddl or table.spark_schema.json,
        "watermark": None if watermark is None else {"column": watermark.column, "delay": watermark.delay},
        "options": {name: str(value) for name, value in table.options.items()},
        "columns": _columns(table.columns),
        **_described(table),
    }


def _sink(sink: Sink) -> dict[str, Any]:
    return {
        "resource_type": "sink",
        "name": sink.name,
        "unrendered_config": dict(sink.written),
        "format": sink.format,
        "path": sink.path,
        "table": sink.table,
        "function": sink.function,
        **_record(sink.record),
        "partition_by": list(sink.partition_by),
        "files_per_batch": sink.files_per_batch,
        "options": dict(sink.options),
        **_described(sink),
    }


def _exposure(compiled: CompiledProject, unique_id: str, exposure: Exposure) -> dict[str, Any]:
    """Returns an exposure with the keys of dbt's manifest."""
    project = compiled.project.name
    path = exposure.location.path
    return {
        "resource_type": "exposure",
        "name": exposure.name,
        "package_name": project,
        "path": path.partition("/")[2] or path,
        "original_file_path": path,
        "unique_id": unique_id,
        "fqn": [project, *exposure.folders, exposure.name],
        "type": exposure.type,
        "label": exposure.label,
        "owner": dict(exposure.owner_keys),
        "description": exposure.description,
        "maturity": exposure.maturity,
        "url": exposure.url,
        "tags": list(exposure.tags),
        "meta": dict(exposure.meta),
        "config": exposure.plain_config,
        "unrendered_config": dict(exposure.written),
        "refs": [{"name": each.parts[-1]} for each in exposure.inputs if each.kind == "ref"],
        "sources": [list(each.parts) for each in exposure.inputs if each.kind == "source"],
        "depends_on": {"macros": [], "nodes": list(compiled.graph.parents[unique_id])},
        "declared_at": str(exposure.location),
    }


def _constraint(constraint: Constraint) -> dict[str, Any]:
    found = vars(constraint)
    names = ("type", "columns", "expression", "name", "to", "to_columns")
    return {name: list(found[name]) if isinstance(found[name], tuple) else found[name] for name in names}


def _data_test(test: DataTest) -> dict[str, Any]:
    document = test.document
    return {
        "name": test.name,
        "test": test.kind,
        "column": test.column,
        "condition": described(test),
        "on_violation": test.action,
        "description": document.description,
        "tags": list(document.config.tags),
        "meta": dict(document.config.meta),
        "declared_at": str(test.location),
    }


def _group(compiled: CompiledProject, group: Group) -> dict[str, Any]:
    """Returns a group with the keys of dbt's manifest, and the ids of its models."""
    return {
        "resource_type": "group",
        "name": group.name,
        "description": group.description,
        "owner": {"name": group.owner.name, "email": list(group.owner.email), **(group.owner.model_extra or {})},
        "config": {"meta": {} if group.config is None else dict(group.config.meta)},
        "models": [node for node, model in compiled.models.items() if model.config.group == group.name],
        "declared_at": str(group.location),
    }


def _docs_block(block: DocsBlock) -> dict[str, Any]:
    return {
        "resource_type": "doc",
        "name": block.name,
        "path": block.location.path,
        "block_contents": block.text,
        "declared_at": str(block.location),
    }


def _record(record: RecordFormat) -> dict[str, Any]:
    return {"value_format": record.value_format, "key": list(record.key), "headers": list(record.headers)}


def _described(declaration: SourceTable | Sink) -> dict[str, Any]:
    return {
        "description": declaration.description,
        "tags": list(declaration.tags),
        "meta": dict(declaration.meta),
        "declared_at": str(declaration.location),
    }


def _columns(columns: tuple[DeclaredColumn, ...]) -> dict[str, dict[str, str | None]]:
    return {column.name: {"data_type": column.data_type, "description": column.description} for column in columns}


def output_columns(columns: tuple[Column, ...] | None) -> list[dict[str, Any]] | None:
    """Returns a model's output columns with their origins, and with type and watermark if known."""
    if columns is None:
        return None
    return [
        {
            "name": column.name,
            "data_type": None if column.type is None else str(column.type),
            "watermark": None if column.event_time is None else column.event_time.delay,
            "origins": [{"unique_id": node, "column": name} for node, name in sorted(column.origins)],
        }
        for column in columns
    ]
