"""`sqlstream status` reads what runs have left, and tells those that live from those that were killed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError, ProjectRequest, UsageError
from sqlstream.app.request import Selection
from sqlstream.app.running.process_start import process_start
from sqlstream.app.status import read_status
from sqlstream.cli.main import main
from sqlstream.state.runs.status import RunStatus

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
    """Has a run of some queries begun as a process."""
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
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def test_there_is_nothing_to_read_before_the_first_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which is no state of any query: exit code 2."""
    assert code("status", "--project-dir", str(project)) == 2
    assert "no events of a run in logs/events.jsonl and target/run_results.json" in capsys.readouterr().err


def test_a_living_run_is_well(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its process is there, and began when it says."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")

    assert code("status", "--project-dir", str(project)) == 0
    assert f"as process {os.getpid()}" in capsys.readouterr().out


def test_a_process_that_has_its_number_by_chance_is_another_one(project: Path) -> None:
    """The run was killed, and the number given again."""
    start = str(process_start(os.getpid()))
    note(project, "r1", os.getpid(), start.rpartition("/")[0] + "/1", a="running")

    (seen,) = read_status(ProjectRequest(project)).runs
    assert seen.life is RunStatus.KILLED
    assert code("status", "--project-dir", str(project)) == 1


def test_a_run_of_another_machine_is_not_looked_for(project: Path) -> None:
    """Its number says nothing here."""
    note(project, "r1", os.getpid(), "another/machine/1", a="running")

    assert read_status(ProjectRequest(project)).queries[0].status == "unknown"


def test_a_selection_takes_its_queries(project: Path) -> None:
    """In dbt's grammar; one that takes none is refused, one of queries that never ran has nothing to read."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")
    request = ProjectRequest(project)

    assert [query.model for query in read_status(request, Selection(("a",))).queries] == ["a"]
    with pytest.raises(UsageError, match="no events of the selected queries"):
        read_status(request, Selection(("tag:second",)))
    with pytest.raises(FindingsError):
        read_status(request, Selection(("nothing_such",)))


def test_a_model_that_is_gone_is_not_told_of(project: Path) -> None:
    """As far as the last compilation knows."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running", gone="error")
    assert code("status", "--project-dir", str(project)) == 1

    assert code("compile", "--project-dir", str(project)) == 0

    assert [query.model for query in read_status(ProjectRequest(project)).queries] == ["a"]
    assert code("status", "--project-dir", str(project), "--output", "json") == 0


def test_only_runs_of_the_target_count_where_one_is_named(project: Path) -> None:
    """The status of production is not that of a trial."""
    note(project, "r1", os.getpid(), process_start(os.getpid()), a="running")

    assert len(read_status(ProjectRequest(project, target="local")).queries) == 1
    with pytest.raises(UsageError):
        read_status(ProjectRequest(project, target="prod"))


def test_files_that_cannot_be_read_as_such_are_none(project: Path) -> None:
    """A torn run_results.json is no fault of the reader's."""
    (project / "target").mkdir()
    (project / "target/run_results.json").write_text('{"metadata": ')
    (project / "target/manifest.json").write_text("[]")
    (project / "logs").mkdir()
    (project / "logs/events.jsonl").mkdir()

    with pytest.raises(UsageError):
        read_status(ProjectRequest(project))
