"""Files under target/: compiled SQL, the manifest, the results of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic_core import to_json

from sqlstream.app.loading.load import Invocation, Loaded
from sqlstream.app.loading.whole_files import write_file, write_files
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.errors import Finding
from sqlstream.version import __version__

MANIFEST = "manifest.json"
RUN_RESULTS = "run_results.json"


@dataclass(frozen=True)
class RunRecord:
    """What a run tells machines, while it goes on (`succeeded` is None) and when it has ended; `seconds` is its wall
    time so far.

    `target` is None where the project's default was to be used and the project did not load. `findings` are those that
    refused the run, and the warnings of one that was not refused. `results` are the entries of the queries, empty where
    the run was refused. `process` says which process it is, by its number and its start.
    """

    invocation: Invocation
    target: str | None
    succeeded: bool | None
    findings: tuple[Finding, ...]
    results: tuple[Mapping[str, object], ...]
    seconds: float
    process: Mapping[str, object]


def write_compiled(loaded: Loaded, models: Sequence[CompiledModel]) -> None:
    """Writes the compiled SQL of `models`, the very text that runs, and the manifest of the whole project.

    Raises: UsageError where target/ cannot be written.
    """
    folder = str(loaded.target_folder)
    contents = [(f"{folder}/{model.compiled_path}", model.sql.encode()) for model in models]

    def manifest() -> tuple[str, bytes]:
        """Made while other processes write the models."""
        content = build_manifest(loaded.compiled, generated_at=_now(), invocation_id=loaded.invocation.id)
        return f"{folder}/{MANIFEST}", _json(content)  # on one line, as dbt writes its manifest

    write_files(sorted(contents), manifest)  # folder by folder


def write_run_results(folder: Path, record: RunRecord) -> None:
    """Writes run_results.json into the target folder: how the run goes or ended, its findings, and each query's status,
    batches, rows, duration, error and last progress. Raises: UsageError where it cannot be written.
    """
    status = "running" if record.succeeded is None else "success" if record.succeeded else "error"
    content = {
        "metadata": {
            "run_results_version": 1,
            "sqlstream_version": __version__,
            "generated_at": _now(),
            "invocation_id": record.invocation.id,
            "started_at": _utc(record.invocation.started_at),
            "target": record.target,
            **record.process,
        },
        "status": status,
        "elapsed_seconds": round(record.seconds, 3),
        "findings": [finding.as_json() for finding in record.findings],
        "results": list(record.results),
    }
    write_file(str(folder / RUN_RESULTS), _json(content, indent=2))


def _json(content: object, indent: int | None = None) -> bytes:
    """`content` as JSON with a line end, on one line without `indent`."""
    try:
        return to_json(content, indent=indent, fallback=str) + b"\n"
    except ValueError:  # for text with halves of letters, as names of files may have
        return json.dumps(content, indent=indent, default=str).encode() + b"\n"


def _now() -> str:
    return _utc(datetime.now(UTC))


def _utc(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
