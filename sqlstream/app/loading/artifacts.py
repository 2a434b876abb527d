"""Files under target/: compiled SQL, the manifest, the results of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_core import to_json

from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.load import Invocation, Loaded
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.errors import Finding
from sqlstream.times import utc_now, utc_text
from sqlstream.version import __version__

MANIFEST = "manifest.json"
RUN_RESULTS = "run_results.json"
SOURCES = "sources.json"


@dataclass(frozen=True)
class RunRecord:
    """The content of run_results.json, during a run (`succeeded` is None) and after it.

    `target` is None if the request names none and the project did not load. `findings` are the reasons why the run was
    refused, or its warnings. `results` has an entry per query, and is empty if the run was refused. `seconds` is the
    wall time so far. `process` identifies the process by its number and its start. `arguments` are the command and its
    options, as in dbt.
    """

    invocation: Invocation
    target: str | None
    succeeded: bool | None
    findings: tuple[Finding, ...]
    results: tuple[Mapping[str, object], ...]
    seconds: float
    process: Mapping[str, object]
    arguments: Mapping[str, object] = field(default_factory=dict)


def write_compiled(loaded: Loaded, models: Sequence[CompiledModel]) -> None:
    """Writes the compiled SQL of `models`, exactly as it runs, and the manifest of the whole project.

    Raises: UsageError if target/ cannot be written.
    """
    folder = str(loaded.target_folder)
    for model in sorted(models, key=lambda model: model.compiled_path):  # files of one folder together
        write_file(f"{folder}/{model.compiled_path}", model.sql.encode())
    manifest = build_manifest(loaded.compiled, generated_at=utc_now(), invocation_id=loaded.invocation.id)
    write_file(f"{folder}/{MANIFEST}", _json(manifest))  # on one line, like dbt's manifest


def write_run_results(folder: Path, record: RunRecord) -> None:
    """Writes run_results.json into the target folder: the status and findings of the run, and the status, batches,
    rows, duration, error and last progress of each query. Raises: UsageError if it cannot be written.
    """
    status = "running" if record.succeeded is None else "success" if record.succeeded else "error"
    content = {
        "metadata": {
            "run_results_version": 1,
            "sqlstream_version": __version__,
            "generated_at": utc_now(),
            "invocation_id": record.invocation.id,
            "started_at": utc_text(record.invocation.started_at),
            "target": record.target,
            **record.process,
        },
        "args": record.arguments,
        "status": status,
        "elapsed_seconds": round(record.seconds, 3),
        "findings": [finding.as_json() for finding in record.findings],
        "results": list(record.results),
    }
    write_file(str(folder / RUN_RESULTS), _json(content, indent=2))


def write_sources(loaded: Loaded, content: Mapping[str, object], path: Path | None = None) -> None:
    """Writes the freshness of sources, by default to sources.json in the target folder.

    Raises: UsageError if it cannot be written.
    """
    write_file(str(path or loaded.target_folder / SOURCES), _json(content, indent=2))


def _json(content: object, indent: int | None = None) -> bytes:
    """Returns `content` as JSON with a final newline; on one line without `indent`."""
    try:
        return to_json(content, indent=indent, fallback=str) + b"\n"
    except ValueError:  # lone surrogates, which file names may contain
        return json.dumps(content, indent=indent, default=str).encode() + b"\n"
