"""The pages of what YAML files, seeds, macros and Python modules declare."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sqlstream.app.docs.model_pages import declared_columns, described
from sqlstream.app.test.unit_tests import TestedProject, unit_test_id
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import model_id, seed_id, source_id
from sqlstream.compiler.rules.rule import terminal_models
from sqlstream.location import Location
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.files.python_files import PythonFunction
from sqlstream.project.formats.guarantees import guarantee_of, modes_of
from sqlstream.project.values import Project, Seed, Sink, SourceTable

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\((.*?)\)\s*-?%\}.*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)


def source_entry(table: SourceTable, compiled: CompiledProject) -> dict[str, Any]:
    """Returns the entry of a source table."""
    watermark = table.watermark
    settings = {
        "format": table.format,
        "path": table.path,
        "table": table.table,
        "class": table.python,
        "mode": table.mode,
        "changes": table.changes or None,
        "watermark": f"{watermark.column}, {watermark.delay}" if watermark else None,
        "value_format": table.messages.value_format if table.messages else None,
        "on_corrupt": table.on_corrupt,
        "quarantine_sink": table.quarantine_sink,
        "refresh": table.refresh,
        "schema_changes": table.schema_changes,
        "timestamp_unit": table.timestamp_unit,
        "max_event_time": table.max_event_time,
        **_freshness(table),
        "options": {name: str(value) for name, value in table.options.items()},
    }
    return {
        "kind": "source",
        "name": table.full_name,
        "group": table.source,
        "path": table.location.path,
        "line": table.location.line,
        **described(table.description),
        "tags": list(table.tags),
        "meta": dict(table.meta),
        "streaming": table.mode == "stream",
        "columns": _columns(compiled, source_id(compiled.project.name, table), table),
        "config": _set(settings),
    }


def _freshness(table: SourceTable) -> dict[str, str | None]:
    freshness = table.freshness
    if freshness is None:
        return {}
    limits = (("warn after", freshness.warn_after), ("error after", freshness.error_after))
    return {
        "freshness": ", ".join(f"{word} {limit.text}" for word, limit in limits if limit is not None),
        "freshness filter": freshness.filter,
        "loaded_at_field": table.loaded_at_field,
    }


def seed_entry(seed: Seed, compiled: CompiledProject) -> dict[str, Any]:
    """Returns the entry of a seed."""
    config = {key: located.value for key, located in seed.config.items()}
    tags = config.pop("tags", [])
    return {
        "kind": "seed",
        "name": seed.name,
        "path": seed.path,
        "folders": seed.path.split("/")[1:-1],
        **described(seed.description),
        "tags": tags if isinstance(tags, list) else [tags],
        "meta": config.pop("meta", {}),
        "streaming": False,
        "columns": _columns(compiled, seed_id(compiled.project.name, seed.name), seed),
        "config": _set(config),
    }


def sink_entry(sink: Sink, compiled: CompiledProject, chosen: Collection[str]) -> dict[str, Any]:
    """Returns the entry of a sink, which depends on the models that write to it."""
    settings = {
        "format": sink.format,
        "path": sink.path,
        "table": sink.table,
        "function": sink.function,
        "value_format": sink.record.value_format,
        "key": list(sink.record.key),
        "headers": list(sink.record.headers),
        "partition_by": list(sink.partition_by),
        "files_per_batch": sink.files_per_batch,
        "options": {name: str(option) for name, option in sink.options.items()},
    }
    writers = [model.unique_id for model, output in terminal_models(compiled) if output.sink == sink.name]
    return {
        "kind": "sink",
        "name": sink.name,
        "path": sink.location.path,
        "line": sink.location.line,
        **described(sink.description),
        "tags": list(sink.tags),
        "meta": dict(sink.meta),
        "config": _set(settings),
        "guarantees": [{"mode": mode, **vars(guarantee_of(sink.format, mode))} for mode in modes_of(sink.format)],
        "depends_on": [writer for writer in dict.fromkeys(writers) if writer in chosen],
    }


def exposure_entry(unique_id: str, compiled: CompiledProject) -> dict[str, Any]:
    """Returns the entry of an exposure. `url` is its address if a browser can safely open it."""
    exposure = compiled.exposures[unique_id]
    settings = {
        "label": exposure.label,
        "type": exposure.type,
        "maturity": exposure.maturity,
        "url": exposure.url,
        "owner": dict(exposure.owner_keys),
    }
    is_web = (exposure.url or "").lower().startswith(("https://", "http://"))
    return {
        "kind": "exposure",
        "name": exposure.name,
        "path": exposure.location.path,
        "line": exposure.location.line,
        **described(exposure.description),
        "tags": list(exposure.tags),
        "meta": dict(exposure.meta),
        "url": exposure.url if is_web else None,
        "config": _set(settings),
        "depends_on": list(compiled.graph.parents[unique_id]),
    }


def macro_entries(project: Project) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the id and the entry of each macro, with the models that call it."""
    for file in project.macros:
        for match in _MACRO.finditer(file.text):
            called = re.compile(rf"\b{match[1]}\s*\(")
            users = [model.name for model in project.models if called.search(model.text)]
            yield (
                f"macro.{project.name}.{match[1]}",
                {
                    "kind": "macro",
                    "name": match[1],
                    "path": file.path,
                    "line": file.text.count("\n", 0, match.start()) + 1,
                    **described(_comment_before(file.text[: match.start()])),
                    "arguments": " ".join(match[2].split()),
                    "language": "sql",
                    "raw": match[0],
                    "used_in": [f"model.{project.name}.{name}" for name in users],
                },
            )


def function_entry(project: str, function: PythonFunction) -> tuple[str, dict[str, Any]]:
    """Returns the id and the entry of a Python function that SQL can call."""
    settings = {"reference": function.reference, "returns": function.returns}
    entry = {
        "kind": "function",
        "name": function.name,
        "path": function.location.path,
        "line": function.location.line,
        **described(""),
        "config": _set(settings),
    }
    return f"function.{project}.{function.name}", entry


def _columns(compiled: CompiledProject, node: str, declared: SourceTable | Seed) -> list[dict[str, Any]] | None:
    """Returns the columns of a table with their types; None if they are unknown."""
    fields = compiled.known_columns(node)
    if fields is None:
        return declared_columns(declared.columns) or None
    texts = {column.name.lower(): column.description for column in declared.columns}
    watermark = declared.watermark if isinstance(declared, SourceTable) else None
    return [
        {
            "name": field.name,
            "type": None if str(field.type) == "unknown" else str(field.type),
            "watermark": watermark.delay if watermark and watermark.column.lower() == field.name.lower() else None,
            **described(texts.get(field.name.lower(), "")),
        }
        for field in fields
    ]


def _comment_before(text: str) -> str:
    """Returns the Jinja comment right before a macro, which describes it."""
    comment = re.search(r"\{#-?((?:(?!#\}).)*?)-?#\}\s*\Z", text, re.DOTALL)
    return comment[1].strip() if comment else ""


def _set(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if value not in (None, [], {}, "")}


def test_entries(tested: TestedProject, chosen: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the id and the entry of each unit test of the models `chosen`."""
    project = tested.loaded.compiled.project
    files = ProjectFiles(project.root)
    texts: dict[str, list[str]] = {}
    for test in tested.tests.cases:
        model = model_id(project.name, test.model)
        if model not in chosen:
            continue
        place = test.location
        if place.path not in texts:
            texts[place.path] = (files.try_read(place.path, []) or "").splitlines()
        entry = {
            "kind": "test",
            "name": test.name,
            "model": model,
            "path": place.path,
            "line": place.line,
            **described(test.document.description),
            "tags": sorted(test.tags),
            "language": "text",
            "raw": _as_written(texts[place.path], place),
            "given": [given.text for given in test.given],
            "tested_in": model,
        }
        yield unit_test_id(project.name, test.model, test.name), entry


def _as_written(lines: list[str], place: Location) -> str:
    """Returns the item of a YAML list that contains `place`: its lines, without their indentation."""
    start = place.line - 1
    while start > 0 and not lines[start].lstrip().startswith("- "):
        start -= 1
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    return "\n".join(line[indent:] for line in lines[start:end]).rstrip() + "\n"
