"""The files under target/."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from sqlstream.app.loading.artifacts import RunRecord, write_compiled, write_run_results
from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.state.runs.events import QueryResult, Status
from sqlstream.version import __version__

RESULT = QueryResult(
    model="größe",
    unique_id="model.shop.größe",
    index=1,
    total=1,
    status=Status.ERROR,
    batches=1,
    rows_in=5,
    rows_out=None,
    seconds=2.0,
    output=None,
    checkpoint="/c",
    finding=Finding("query-failed", "it failed", "no disk", "make room", Location("models/big/größe.sql", 2, 1)),
)
WARNING = Finding("empty-selection", "nothing", "why", "fix", severity=Severity.WARNING)
FILES = {
    "project.yml": "name: shop\nversion: 1.0.0\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: rate}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/fast.sql": "select value from {{ source('shop', 'orders') }}\n",
    "models/big/größe.sql": "{{ config(sink='nowhere') }}\nselect 'größe' as x, value from {{ ref('fast') }}\n",
}


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """A compiled project of a view and a terminal model."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return load(ProjectRequest(tmp_path))


def test_the_compiled_sql_is_the_text_that_runs(loaded: Loaded) -> None:
    """Each given model has one file at its path under models/, with exactly the SQL that runs."""
    models = tuple(loaded.compiled.models.values())

    write_compiled(loaded, models)

    written = sorted((loaded.target_folder / "compiled").rglob("*.sql"))
    assert [path.relative_to(loaded.target_folder) for path in written] == sorted(
        Path(model.compiled_path) for model in models
    )
    for model in models:
        assert (loaded.target_folder / model.compiled_path).read_text(encoding="utf-8") == model.sql


def test_the_manifest_has_the_whole_project(loaded: Loaded) -> None:
    """The manifest has the whole project, even if only some models are compiled."""
    write_compiled(loaded, ())

    manifest = json.loads((loaded.target_folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["nodes"]) == set(loaded.compiled.models)
    assert manifest["metadata"]["invocation_id"] == loaded.invocation.id
    assert not (loaded.target_folder / "compiled").exists()


def test_run_results_have_each_query(loaded: Loaded) -> None:
    """run_results.json has the invocation, and the status, findings and UTC time of each query."""
    record = RunRecord(loaded.invocation, "local", False, (WARNING,), (RESULT.as_json(),), 12.34567, {"pid": 7})

    write_run_results(loaded.target_folder, record)

    content = json.loads((loaded.target_folder / "run_results.json").read_text(encoding="utf-8"))
    metadata = content["metadata"]
    assert content["elapsed_seconds"] == 12.346
    assert content["status"] == "error"
    assert content["findings"] == [WARNING.as_json()]
    assert content["results"] == [RESULT.as_json()]
    assert metadata["sqlstream_version"] == __version__
    assert metadata["invocation_id"] == loaded.invocation.id
    assert (metadata["target"], metadata["pid"]) == ("local", 7)
    assert datetime.fromisoformat(metadata["generated_at"]).utcoffset() is not None
