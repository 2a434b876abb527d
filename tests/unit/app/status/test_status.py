"""`sqlstream status` reads what runs have left behind, and tells running from killed runs."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError, ProjectRequest, UsageError
from sqlstream.app.observe.record import journal_files
from sqlstream.app.request import Selection
from sqlstream.app.status.status import RunStatus, RunWithStatus, known_runs, project_status, read_status, with_patches
from sqlstream.cli.main import main
from sqlstream.history import database
from sqlstream.history.reads import PastRun
from sqlstream.history.store import History
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.processes import process_start

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


BEGAN: dict[str, Any] = {"event": "run_began", "target": None, "pid": 7, "process_start": "boot/1"}


def line(time: str, run: str = "r1", **fields: Any) -> str:
    """Returns a line of the journal at noon and `time`."""
    return json.dumps({"time": f"2024-01-01T12:{time}.000Z", "invocation_id": run, **fields})


def entry(model: str = "orders", status: str = "running", **known: Any) -> dict[str, Any]:
    """Returns an entry of a query."""
    return {"model": model, "unique_id": f"model.shop.{model}", "status": status, **known}


def results(time: str, status: str, *entries: dict[str, Any], run: str = "r1") -> dict[str, Any]:
    """Returns the content of run_results.json."""
    metadata = {"invocation_id": run, "generated_at": f"2024-01-01T12:{time}.000Z", "pid": 7, "process_start": "boot/1"}
    return {"metadata": {**metadata, "target": "local"}, "status": status, "results": list(entries)}


def recorded(folder: Path, lines: list[str], results: object) -> tuple[PastRun, ...]:
    """Returns the runs of a project with these lines in its journal and this run_results.json."""
    for name, text in {
        "logs/events.jsonl": "\n".join([*lines, ""]),
        "target/run_results.json": json.dumps(results),
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return tuple(known.run for known in known_runs(folder))


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


def test_a_run_is_read_from_its_lines(tmp_path: Path) -> None:
    """A run has the newest entry of each query, with the progress of its last batch."""
    (run,) = recorded(
        tmp_path,
        [
            line("00:00", **BEGAN),
            line("00:01", event="run_loaded", target="local"),
            line("00:02", event="batch", model="orders", batch_id=3, rows_in=5, query=entry(rows_in=5)),
            line("00:03", event="query_restarting", model="orders", query=entry(status="restarting")),
        ],
        None,
    )

    assert (run.target, run.pid, run.process_start, run.succeeded) == ("local", 7, "boot/1", None)
    assert (run.began_at, run.heard_at) == ("2024-01-01T12:00:00.000Z", "2024-01-01T12:00:03.000Z")
    assert run.queries["orders"]["status"] == "restarting"
    assert run.queries["orders"]["progress"]["batch_id"] == 3


def test_torn_and_foreign_lines_are_ignored(tmp_path: Path) -> None:
    """Torn lines and lines of other programs are ignored; complete lines count."""
    lines = ['{"time": "2024', "[]", '{"time": 1}', "", line("00:01", event="batch", query="?"), line("00:02", **BEGAN)]

    (run,) = recorded(tmp_path, lines, {"metadata": "?"})

    assert (run.pid, run.queries) == (7, {})


def test_newer_results_are_used(tmp_path: Path) -> None:
    """If run_results.json is newer than the journal, its entries are used."""
    older = line("00:02", event="batch", model="orders", batch_id=3, query=entry(rows_in=5))
    known = results("00:09", "error", entry(status="error", rows_in=9), entry("idle", "success"))

    (run,) = recorded(tmp_path, [older], known)
    assert (run.succeeded, run.queries["orders"]["rows_in"], set(run.queries)) == (False, 9, {"orders", "idle"})

    (run,) = recorded(tmp_path, [older], results("00:01", "running", entry(rows_in=1)))
    assert (run.succeeded, run.queries["orders"]["rows_in"], run.pid) == (None, 5, 7)


def test_each_query_has_the_state_of_its_newest_run(tmp_path: Path) -> None:
    """Two runs of different queries are both shown; older states are not."""
    lines = [
        line("00:00", run="old", event="query_ended", query=entry("a", "error")),
        line("00:01", run="old", event="query_ended", query=entry("b", "success")),
        line("00:02", run="old", event="run_ended", succeeded=False),
        line("00:03", run="new", event="query_started", query=entry("a")),
    ]
    old, new = recorded(tmp_path, lines, None)

    status = project_status([RunWithStatus(old, RunStatus.ENDED), RunWithStatus(new, RunStatus.RUNNING)], None)

    assert [(query.model, query.status) for query in status.queries] == [("a", "running"), ("b", "success")]
    assert [seen.run.invocation_id for seen in status.runs] == ["old", "new"]
    assert status.is_well


def test_only_patches_that_exist_are_named(tmp_path: Path) -> None:
    """No patch is named for a source whose file no patch can change, or whose patch is applied."""
    found = {"shop.orders": "struct<color: string>", "shop.prices": "struct<lot: bigint>"}
    run = PastRun("r1", "local", 7, "b/1", "t", "t", True, queries={"orders": entry(new_types=found)})
    patch = tmp_path / "target/schema_changes/shop.prices.patch"
    patch.parent.mkdir(parents=True)
    patch.write_text("new fields: ...")

    status = with_patches(project_status([RunWithStatus(run, RunStatus.ENDED)], None), tmp_path)

    assert status.patched == ("shop.prices",)


def test_running_queries_of_a_killed_run_are_killed(tmp_path: Path) -> None:
    """Queries that ran when their run was killed are killed; on another machine their state is unknown."""
    lines = [
        line("00:00", event="query_ended", query=entry("a", "success")),
        line("00:01", event="query_started", query=entry("b", silence={"cause": "no_input", "text": "nothing"})),
    ]
    (run,) = recorded(tmp_path, lines, None)

    killed = project_status([RunWithStatus(run, RunStatus.KILLED)], None)
    assert [query.status for query in killed.queries] == ["success", "killed"]
    assert (killed.queries[1].entry["silence"], killed.is_well) == (None, False)
    elsewhere = project_status([RunWithStatus(run, RunStatus.ELSEWHERE)], None)
    assert ([query.status for query in elsewhere.queries], elsewhere.is_well) == (["success", "unknown"], True)


def test_only_selected_queries_are_shown(tmp_path: Path) -> None:
    """Only selected queries are shown, and the newest run even without them."""
    lines = [line("00:00", event="query_ended", query=entry("a", "error")), line("00:01", run="r2", **BEGAN)]
    runs = [RunWithStatus(run, RunStatus.ENDED) for run in recorded(tmp_path, lines, None)]

    status = project_status(runs, {"model.shop.b"})

    assert (status.queries, [seen.run.invocation_id for seen in status.runs]) == ((), ["r2"])
    assert status.is_well


def test_a_newest_run_that_was_refused_is_not_well(tmp_path: Path) -> None:
    """A project whose newest run was refused is not well, even if no query has failed."""
    (run,) = recorded(tmp_path, [line("00:00", **BEGAN), line("00:01", event="run_ended", succeeded=False)], None)

    assert not project_status([RunWithStatus(run, RunStatus.ENDED)], None).is_well


def test_a_run_that_was_refused_before_a_query_started() -> None:
    """A run whose queries were chosen and never started was refused: its queries were skipped, and not all is well."""
    entry = {"unique_id": "model.shop.a", "model": "a", "status": "pending"}
    run = PastRun("r", began_at="2024-01-01T00:00:00Z", succeeded=False, queries={"a": entry})

    status = project_status([RunWithStatus(run, RunStatus.ENDED)], None)

    assert status.runs[0].is_refused
    assert ([query.status for query in status.queries], status.is_well) == (["skipped"], False)


@pytest.fixture
def of_page(tmp_path: Path) -> Path:
    """A project whose page has read a run that has ended, and the start of another one behind it in the journal."""
    recorded(tmp_path, [line("00:00", **BEGAN, query=entry("a", "success")), line("00:01", event="run_ended")], None)
    with closing(History(tmp_path / "logs", journal_files(tmp_path / "logs"))) as history:
        assert history.ingest().lines == 2
    with (tmp_path / "logs/events.jsonl").open("a") as file:
        file.write(line("00:02", "r2", event="query_started", query=entry("b")) + "\n")
    return tmp_path


def states(folder: Path) -> list[tuple[str, str]]:
    """Returns the statuses of the queries of all runs."""
    return [(str(model), entry["status"]) for known in known_runs(folder) for model, entry in known.run.queries.items()]


EVERY_STATE = [("a", "success"), ("b", "running")]


def test_status_reads_the_history_of_the_page(of_page: Path) -> None:
    """`status` reads the history that runs and the page write, and only new lines of the journal. So it also knows runs
    whose lines have been removed.
    """
    assert states(of_page) == EVERY_STATE
    (of_page / "logs/events.jsonl").unlink()
    assert states(of_page) == EVERY_STATE


def test_status_of_a_history_that_another_process_writes(of_page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes the history, `status` reads the journal instead."""
    monkeypatch.setattr(database, "LOCKED_SECONDS", 0.01)
    with closing(sqlite3.connect(of_page / "logs/history.sqlite", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert states(of_page) == EVERY_STATE


@pytest.mark.parametrize("statement", ["PRAGMA user_version = 99", "PRAGMA application_id = 1", "DROP TABLE runs"])
def test_status_replaces_no_history(of_page: Path, statement: str) -> None:
    """A history of another version, or a foreign file, is left alone, and `status` reads the journal."""
    with closing(sqlite3.connect(of_page / "logs/history.sqlite")) as writer:
        writer.execute(statement)
    before = sorted((of_page / "logs").iterdir())
    assert states(of_page) == EVERY_STATE
    assert sorted((of_page / "logs").iterdir()) == before


def test_status_makes_no_history(tmp_path: Path) -> None:
    """`status` writes no file into a project whose runs have not written a history."""
    assert known_runs(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []
    recorded(tmp_path, [line("00:00", **BEGAN)], None)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["events.jsonl"]


def test_a_storage_that_cannot_be_read_now_kills_no_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submitted run is killed only if its storage says now that it has not written for long; otherwise it is unknown."""
    note(project, "r1", 1, "another machine", orders="running")
    folder = project / ".sqlstream/local/_logs"
    folder.mkdir(parents=True)
    journal = folder / "20260101T000000Z_r1_00001_0000001.jsonl"
    journal.write_text("{}\n")
    os.utime(journal, (1, 1))
    assert [query.status for query in read_status(ProjectRequest(project)).queries] == ["killed"]

    def unreadable(*_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(LocalStorage, "files", unreadable)
    assert [query.status for query in read_status(ProjectRequest(project)).queries] == ["unknown"]
