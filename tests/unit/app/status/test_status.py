"""`sqlstream status` reads what runs have left behind, and tells running from killed runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError, ProjectRequest, UsageError
from sqlstream.app.request import Selection
from sqlstream.app.status.status import read_status
from sqlstream.cli.main import main
from sqlstream.spark.storage.processes import process_start
from sqlstream.state.runs.history import RunStatus

FILES = {
    "project.yml": "name: shop\nversion: 1.0.0\n",
    "sources.yml": "sources:\n  - {name: shop, tables: [{name: orders, format: rate}]}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/a.sql": "{{ config(sink='nowhere') }} select value from {{ source('shop', 'orders') }}",
    "models/b.sql": "{{ config(sink='nowhere', tags=['second']) }} select value from {{ source('shop', 'orders') }}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two queries that has never run."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def note(project: Path, run: str, pid: int, start: str | None, **statuses: str) -> None:
    """Records that a process has started a run of some queries."""
    lines: list[dict[str, Any]] = [{"event": "run_began", "pid": pid, "process_start": start, "target": "local"}]
    lines += [
        {"event": "query_started", "query": {"model": model, "unique_id": f"model.shop.{model}", "status": status}}
        for model, status in statuses.items()
    ]
    (project / "logs").mkdir(exist_ok=True)
    with (project / "logs/events.jsonl").open("a") as file:
        for line in lines:
            file.write(json.dumps({"time": "2024-01-01T12:00:00.000Z", "invocation_id": run, **line}) + "\n")


def code(*arguments: str) -> int:
    """Returns the exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_status_needs_a_first_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first run status has nothing to read and exits with code 2."""
    assert code("status", "--project-dir", str(project)) == 2
    assert (
        "no events of a run in logs/events.jsonl and target/run_results.json, and no checkpoint"
        in capsys.readouterr().err
    )


def test_a_running_process_is_running(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is alive if its process exists and has the recorded start time."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")

    assert code("status", "--project-dir", str(project)) == 0
    assert f"as process {os.getpid()}" in capsys.readouterr().out


def test_a_reused_process_id_is_another_process(project: Path) -> None:
    """A run is killed if another process has reused its process id."""
    start = str(process_start(os.getpid()))
    note(project, "r1", os.getpid(), start.rpartition("/")[0] + "/1", a="running")

    (seen,) = read_status(ProjectRequest(project)).runs
    assert seen.life is RunStatus.KILLED
    assert code("status", "--project-dir", str(project)) == 1


def test_a_run_of_another_machine_is_unknown(project: Path) -> None:
    """The process of a run on another machine is not checked, so its status is unknown."""
    note(project, "r1", os.getpid(), "another/machine/1", a="running")

    assert read_status(ProjectRequest(project)).queries[0].status == "unknown"


def test_a_selection_filters_queries(project: Path) -> None:
    """A selection in dbt's grammar filters the queries; unknown names and queries without runs are errors."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")
    request = ProjectRequest(project)

    assert [query.model for query in read_status(request, Selection(("a",))).queries] == ["a"]
    with pytest.raises(UsageError, match="no events of the selected queries"):
        read_status(request, Selection(("tag:second",)))
    with pytest.raises(FindingsError):
        read_status(request, Selection(("nothing_such",)))


def test_a_deleted_model_is_not_shown(project: Path) -> None:
    """A model that the last compilation no longer has is not shown."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running", gone="error")
    assert code("status", "--project-dir", str(project)) == 1

    assert code("compile", "--project-dir", str(project)) == 0

    assert [query.model for query in read_status(ProjectRequest(project)).queries] == ["a"]
    assert code("status", "--project-dir", str(project), "--output", "json") == 0


def test_a_target_filters_runs(project: Path) -> None:
    """With a target, only runs of that target count."""
    (project / "project.yml").write_text("name: shop\ntargets: {local: {}, prod: {}}\ndefault_target: local\n")
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")

    assert len(read_status(ProjectRequest(project, target="local")).queries) == 1
    with pytest.raises(UsageError):
        read_status(ProjectRequest(project, target="prod"))


def test_runs_of_a_project_with_errors(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a model is being edited, the runs are shown, and the status says why the checkpoints are not."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")
    (project / "models/b.sql").write_text("{{ config(sink='nowhere' }}")

    assert code("status", "--project-dir", str(project)) == 0

    out = capsys.readouterr().out
    assert f"as process {os.getpid()}" in out
    assert "The checkpoints were not read:\nmodels/b.sql:1:" in out


def test_unreadable_results_are_ignored(project: Path) -> None:
    """A torn run_results.json or an invalid manifest.json is ignored."""
    (project / "target").mkdir()
    (project / "target/run_results.json").write_text('{"metadata": ')
    (project / "target/manifest.json").write_text("[]")
    (project / "logs").mkdir()
    (project / "logs/events.jsonl").mkdir()

    with pytest.raises(UsageError):
        read_status(ProjectRequest(project))
