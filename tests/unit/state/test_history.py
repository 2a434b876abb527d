"""Earlier runs are read from the journal and from run_results.json."""

from __future__ import annotations

import json
from typing import Any

from sqlstream.state.runs.history import PastRun, RunStatus, RunWithStatus, past_runs, project_status

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


def test_a_run_is_read_from_its_lines() -> None:
    """A run has the newest entry of each query, with the progress of its last batch."""
    (run,) = past_runs(
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


def test_torn_and_foreign_lines_are_ignored() -> None:
    """Torn lines and lines of other programs are ignored; complete lines count."""
    lines = ['{"time": "2024', "[]", '{"time": 1}', "", line("00:01", event="batch", query="?"), line("00:02", **BEGAN)]

    (run,) = past_runs(lines, {"metadata": "?"})

    assert (run.pid, run.queries) == (7, {})


def test_newer_results_are_used() -> None:
    """If run_results.json is newer than the journal, its entries are used."""
    older = line("00:02", event="batch", model="orders", batch_id=3, query=entry(rows_in=5))
    known = results("00:09", "error", entry(status="error", rows_in=9), entry("idle", "success"))

    (run,) = past_runs([older], known)
    assert (run.succeeded, run.queries["orders"]["rows_in"], set(run.queries)) == (False, 9, {"orders", "idle"})

    (run,) = past_runs([older], results("00:01", "running", entry(rows_in=1)))
    assert (run.succeeded, run.queries["orders"]["rows_in"], run.pid) == (None, 5, 7)


def test_each_query_has_the_state_of_its_newest_run() -> None:
    """Two runs of different queries are both shown; older states are not."""
    lines = [
        line("00:00", run="old", event="query_ended", query=entry("a", "error")),
        line("00:01", run="old", event="query_ended", query=entry("b", "success")),
        line("00:02", run="old", event="run_ended", succeeded=False),
        line("00:03", run="new", event="query_started", query=entry("a")),
    ]
    old, new = past_runs(lines, None)

    status = project_status([RunWithStatus(old, RunStatus.ENDED), RunWithStatus(new, RunStatus.RUNNING)], None)

    assert [(query.model, query.status) for query in status.queries] == [("a", "running"), ("b", "success")]
    assert [seen.run.invocation_id for seen in status.runs] == ["old", "new"]
    assert status.is_well


def test_running_queries_of_a_killed_run_are_killed() -> None:
    """Queries that ran when their run was killed are killed; on another machine their state is unknown."""
    lines = [
        line("00:00", event="query_ended", query=entry("a", "success")),
        line("00:01", event="query_started", query=entry("b", silence={"cause": "no_input", "text": "nothing"})),
    ]
    (run,) = past_runs(lines, None)

    killed = project_status([RunWithStatus(run, RunStatus.KILLED)], None)
    assert [query.status for query in killed.queries] == ["success", "killed"]
    assert (killed.queries[1].entry["silence"], killed.is_well) == (None, False)
    elsewhere = project_status([RunWithStatus(run, RunStatus.ELSEWHERE)], None)
    assert ([query.status for query in elsewhere.queries], elsewhere.is_well) == (["success", "unknown"], True)


def test_only_selected_queries_are_shown() -> None:
    """Only selected queries are shown, and the newest run even without them."""
    lines = [line("00:00", event="query_ended", query=entry("a", "error")), line("00:01", run="r2", **BEGAN)]
    runs = [RunWithStatus(run, RunStatus.ENDED) for run in past_runs(lines, None)]

    status = project_status(runs, {"model.shop.b"})

    assert (status.queries, [seen.run.invocation_id for seen in status.runs]) == ((), ["r2"])
    assert status.is_well


def test_a_newest_run_that_was_refused_is_not_well() -> None:
    """A project whose newest run was refused is not well, even if no query has failed."""
    (run,) = past_runs([line("00:00", **BEGAN), line("00:01", event="run_ended", succeeded=False)], None)

    assert not project_status([RunWithStatus(run, RunStatus.ENDED)], None).is_well


def test_a_run_that_was_refused_before_a_query_started() -> None:
    """A run whose queries were chosen and never started was refused: its queries were skipped, and not all is well."""
    entry = {"unique_id": "model.shop.a", "model": "a", "status": "pending"}
    run = PastRun("r", began_at="2024-01-01T00:00:00Z", succeeded=False, queries={"a": entry})

    status = project_status([RunWithStatus(run, RunStatus.ENDED)], None)

    assert status.runs[0].is_refused
    assert ([query.status for query in status.queries], status.is_well) == (["skipped"], False)
