"""Files under target/: compiled SQL, the manifest, the results of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlstream.app.loading import Loaded
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.manifest import build_manifest
from sqlstream.state.events import QueryResult
from sqlstream.version import __version__


def write_compiled(loaded: Loaded, models: Sequence[CompiledModel]) -> None:
    """Writes the compiled SQL of `models`, the very text that runs, and the manifest of the whole project."""
    for model in models:
        write_text(loaded.target_folder / model.compiled_path, model.sql)
    manifest = build_manifest(loaded.compiled, generated_at=_now(), invocation_id=loaded.invocation.id)
    write_json(loaded.target_folder / "manifest.json", manifest)


def write_run_results(loaded: Loaded, results: Sequence[QueryResult], seconds: float) -> None:
    """Writes target/run_results.json: per query its status, batches, rows, duration and error."""
    content = {
        "metadata": {
            "run_results_version": 1,
            "sqlstream_version": __version__,
            "generated_at": _now(),
            "invocation_id": loaded.invocation.id,
            "target": loaded.compiled.project.target.name,
        },
        "elapsed_seconds": round(seconds, 3),
        "results": [result.as_json() for result in results],
    }
    write_json(loaded.target_folder / "run_results.json", content)


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Writes `content` as JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=2, default=str) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes `text`, whole or not at all: readers of an artifact never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
