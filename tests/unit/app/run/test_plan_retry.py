"""What `retry` repeats, from run_results.json alone."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest, RunRequest
from sqlstream.app.backfill.backfill import BackfillRequest, backfill_arguments
from sqlstream.app.data_tests.check_data import data_test_arguments
from sqlstream.app.data_tests.results import DataTestRequest
from sqlstream.app.last_command import arguments_of_tests, command_line, run_arguments
from sqlstream.app.request import CAUGHT_UP, RunOptions, Selection, UnitTestRequest
from sqlstream.app.run.retry import RetryRequest, plan_retry
from sqlstream.errors import UsageError
from sqlstream.spark.storage.processes import process_start
from sqlstream.state.runs.limits import RunLimits

STARTED = "2026-11-25T03:00:00.500Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a project that has run."""
    (tmp_path / "project.yml").write_text("name: p\nversion: 1.0.0\n")
    (tmp_path / "target").mkdir()
    return tmp_path


def entry(name: str, status: str, kind: str = "stream", trigger: str = "available_now") -> dict[str, Any]:
    """Returns the entry of a query."""
    return {"unique_id": f"model.p.{name}", "model": name, "status": status, "kind": kind, "trigger": trigger}


def write_results(
    root: Path, arguments: dict[str, Any], *entries: dict[str, Any], status: str = "error", pid: int = 1
) -> None:
    """Writes the results of a command on the target `prod` that has ended or, with `status` running, was killed."""
    content = {
        "metadata": {
            "invocation_id": "i",
            "started_at": STARTED,
            "target": "prod",
            "pid": pid,
            "process_start": process_start(pid) if pid == os.getpid() else f"{process_start(os.getpid())}0",
        },
        "args": arguments,
        "status": status,
        "results": entries,
    }
    (root / "target/run_results.json").write_text(json.dumps(content))


def run_request(root: Path, **options: Any) -> RunRequest:
    """Returns the request of a run on prod."""
    return RunRequest(ProjectRequest(root, target="prod", variables={"day": 3}), **options)


def retried(root: Path, **options: Any) -> RunRequest:
    """Returns the request to repeat the run in the results."""
    found = plan_retry(RetryRequest(ProjectRequest(root), **options)).request
    assert isinstance(found, RunRequest)
    return found


def test_a_retry_has_the_options_of_the_command_and_only_what_failed(root: Path) -> None:
    """Failed, skipped and interrupted queries run again, with the target, variables and options of the command."""
    given = run_request(
        root,
        selection=Selection(("tag:daily",), excluded_types=("unit_test",)),
        available_now=True,
        limits=RunLimits(60.0, None, False, 3),
        accept_state_change=("a",),
        metrics_port=9090,
    )
    statuses = ("success", "error", "skipped", "interrupted", "stopped", "no-op")
    write_results(root, run_arguments(given, "run"), *(entry(status, status) for status in statuses))

    found = retried(root)

    names = {"error", "skipped", "interrupted", "stopped"}  # a query that ends was stopped before its end
    nodes = frozenset(f"model.p.{name}" for name in names)
    assert found.selection == Selection(excluded_types=("unit_test",), nodes=nodes)
    assert (found.project.target, found.project.variables) == ("prod", {"day": 3})
    assert (found.available_now, found.limits, found.accept_state_change) == (True, given.limits, ("a",))
    assert (found.metrics_port, found.full_refresh, found.refreshed_since) == (9090, False, None)
    assert retried(root, threads=1).limits.threads == 1
    new = RetryRequest(ProjectRequest(root, variables={"day": 4}), replaces_vars=True)
    changed = plan_retry(new).request
    assert isinstance(changed, RunRequest)
    assert changed.project.variables == {"day": 4}


def test_a_retry_has_every_option_of_the_command(root: Path) -> None:
    """Each option of a run is recorded and repeated: this test fails for a new one until it has a value here."""
    given = run_request(
        root,
        available_now=True,
        full_refresh=True,
        refreshed_since=datetime(2026, 1, 1, 12, 30, tzinfo=UTC),
        limits=RunLimits(90.5, 30.0, True, 3),
        accept_state_change=("a", "tag:b c"),
        migrate=("c",),
        parallel=("d+",),
        switch_when=CAUGHT_UP,
        metrics_port=0,
        metrics_host="0.0.0.0",
    )
    names = {field.name for field in fields(RunOptions)}
    assert {name for name in names if getattr(given, name) == getattr(RunOptions(), name)} == set()
    assert {name for name, value in vars(given.limits).items() if value == getattr(RunLimits(), name)} == set()
    write_results(root, run_arguments(given, "run"), entry("a", "error"))

    found = retried(root)

    assert {name: getattr(found, name) for name in names} == {name: getattr(given, name) for name in names}


def test_a_retry_checks_the_data_tests_that_did_not_pass(root: Path) -> None:
    """Data tests that failed, or were not checked, are checked again; those without rows to read are not."""
    project = ProjectRequest(root, target="prod")
    arguments = data_test_arguments(DataTestRequest(project, Selection(("orders",)), True, store_failures=True))
    statuses = {
        "fail": None,
        "error": None,
        "pending": None,
        "skipped": None,
        "pass": None,
        "warn": None,
        "view": "a view",
    }
    entries = [
        {"unique_id": f"test.p.orders.{name}", "status": name if why is None else "skipped", "reason": why}
        | {"kind": "data_test"}
        for name, why in statuses.items()
    ]
    write_results(root, arguments, *entries)
    planned = plan_retry(RetryRequest(ProjectRequest(root)))
    nodes = frozenset(f"test.p.orders.{name}" for name in ("fail", "error", "pending", "skipped"))
    found = planned.request
    assert isinstance(found, DataTestRequest)
    assert (found.selection.nodes, found.fail_fast, found.store_failures) == (nodes, True, True)
    assert "4 of 7 nodes: data test orders.fail, " in planned.text

    write_results(root, arguments, *entries[4:], status="success")
    assert plan_retry(RetryRequest(ProjectRequest(root))).request is None


@pytest.mark.parametrize(("fail_fast", "repeated"), [(False, {"b"}), (True, {"a", "b"})])
def test_a_stopped_endless_query_has_done_its_work(root: Path, fail_fast: bool, repeated: set[str]) -> None:
    """An endless query that was stopped runs again only if --fail-fast has stopped it."""
    arguments = run_arguments(run_request(root, limits=RunLimits(fail_fast=fail_fast)), "run")
    write_results(root, arguments, entry("a", "stopped", trigger="10 seconds"), entry("b", "error"))

    assert retried(root).selection.nodes == frozenset(f"model.p.{name}" for name in repeated)


def test_a_killed_command_is_repeated_from_where_it_was(root: Path) -> None:
    """What was pending or running when the process died runs again; a live process is left alone."""
    arguments = run_arguments(run_request(root), "build")
    nodes = (entry("a", "success"), entry("b", "running"), entry("c", "pending"))
    write_results(root, arguments, *nodes, status="running")
    assert retried(root).selection.nodes == frozenset({"model.p.b", "model.p.c"})

    write_results(root, arguments, *nodes, status="running", pid=os.getpid())
    with pytest.raises(UsageError, match="still running"):
        retried(root)


def test_a_command_that_was_killed_after_its_last_node_has_nothing_to_retry(root: Path) -> None:
    """If every node had ended well when the process died, nothing is repeated."""
    write_results(root, run_arguments(run_request(root), "build"), entry("a", "success"), status="running")

    found = plan_retry(RetryRequest(ProjectRequest(root)))
    assert (found.request, "every node" in found.text) == (None, True)


def test_a_failure_without_a_failed_node_is_repeated_as_a_whole(root: Path) -> None:
    """The sentence does not say that no node has started."""
    write_results(root, run_arguments(run_request(root), "run"), entry("a", "success"))

    found = plan_retry(RetryRequest(ProjectRequest(root)))
    assert found.request is not None
    assert "failed although no node did" in found.text


def test_a_retry_parses_as_the_command_and_names_the_file(root: Path) -> None:
    """--no-partial-parse applies again, and a target that is gone was named by the results in `state`."""
    request = RunRequest(ProjectRequest(root, partial_parse=False))
    write_results(root, run_arguments(request, "run"), entry("a", "error"))
    (root / "target").rename(root / "saved")

    project = retried(root, state=root / "saved").project
    assert not project.partial_parse
    assert project.target_named_by == f"{root}/saved/run_results.json"


def test_a_full_refresh_is_continued(root: Path) -> None:
    """A retry continues versions that have begun since the first start; --full-refresh starts them over once more."""
    write_results(root, run_arguments(run_request(root, full_refresh=True), "run"), entry("a", "error"))
    began = datetime(2026, 11, 25, 3, 0, 0, 500_000, UTC)

    found = retried(root)
    assert (found.full_refresh, found.refreshed_since) == (True, began)
    write_results(root, run_arguments(found, "run"), entry("a", "error"))
    assert retried(root).refreshed_since == began
    assert retried(root, full_refresh=True).refreshed_since is None


def test_a_refused_command_is_repeated_as_a_whole(root: Path) -> None:
    """A command that was refused before its first node is repeated with its selection, a refused retry with its nodes."""
    selection = Selection(("a+",), ("b",), ("model",), selector=None)
    write_results(root, run_arguments(run_request(root, selection=selection), "build"))
    assert retried(root).selection == selection

    write_results(root, run_arguments(run_request(root, selection=Selection(nodes=frozenset({"model.p.a"}))), "run"))
    assert retried(root).selection.nodes == frozenset({"model.p.a"})


def test_nothing_to_retry(root: Path) -> None:
    """After a success there is nothing to retry, which is no error."""
    write_results(root, run_arguments(run_request(root), "run"), entry("a", "success"), status="success")

    planned = plan_retry(RetryRequest(ProjectRequest(root)))

    assert planned.request is None
    assert planned.text == "Nothing to retry: `sqlstream run --target prod` succeeded"


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "does not exist"), ("{", "does not say which"), ("[]", "does not say which")]
)
def test_without_results_there_is_no_command(root: Path, text: str | None, problem: str) -> None:
    """Missing and damaged results, and those of early versions, are an error of three lines."""
    if text is not None:
        (root / "target/run_results.json").write_text(text)

    with pytest.raises(UsageError, match=problem) as caught:
        retried(root)
    assert [line.split(":")[0].strip() for line in str(caught.value).splitlines()][1:] == ["why", "fix"]


def test_another_target_is_refused(root: Path) -> None:
    """What failed on one target is not repeated on another one."""
    write_results(root, run_arguments(run_request(root), "run"), entry("a", "error"))

    with pytest.raises(UsageError, match="the target `prod`"):
        plan_retry(RetryRequest(ProjectRequest(root, target="dev")))


def test_secrets_are_not_recorded(root: Path) -> None:
    """Variables with the value of a secret are left out, and `retry` asks for them."""
    env = {"SQLSTREAM_SECRET_KEY": "s3cr3t-value"}
    given = RunRequest(ProjectRequest(root, variables={"url": "https://s3cr3t-value@host"}, env=env))
    write_results(root, run_arguments(given, "run"), entry("a", "error"))

    assert "s3cr3t" not in (root / "target/run_results.json").read_text()
    with pytest.raises(UsageError, match="give --vars"):
        retried(root)
    again = RetryRequest(ProjectRequest(root, variables={"url": "x"}))
    found = plan_retry(again).request
    assert isinstance(found, RunRequest)
    assert found.project.variables == {"url": "x"}


def test_tests_and_backfills_are_repeated(root: Path) -> None:
    """A failed `test` is repeated for its failed tests, a failed `backfill` with its range."""
    project = ProjectRequest(root, target="prod")
    failed = {"unique_id": "unit_test.p.a.t", "model": "a", "status": "failed", "kind": "unit_test"}
    write_results(root, arguments_of_tests(UnitTestRequest(project, equivalence=True)), failed)
    tests = plan_retry(RetryRequest(ProjectRequest(root)))
    assert isinstance(tests.request, UnitTestRequest)
    assert (tests.request.selection.nodes, tests.request.equivalence) == (frozenset({"unit_test.p.a.t"}), True)
    assert tests.text.endswith("1 of 1 node: unit test a.t")

    backfill = BackfillRequest(project, "a", since=datetime(2024, 1, 1, tzinfo=UTC))
    write_results(root, backfill_arguments(backfill), entry("a", "error", "backfill"))
    found = plan_retry(RetryRequest(ProjectRequest(root))).request
    assert isinstance(found, BackfillRequest)
    assert (found.model, found.since, found.until, found.only_complete) == ("a", backfill.since, None, False)
    assert (found.replaces, found.by) == (False, None)

    until = datetime(2024, 1, 2, tzinfo=UTC)
    write_results(
        root,
        backfill_arguments(replace(backfill, until=until, replaces=True, by="ts")),
        entry("a", "error", "backfill"),
    )
    recomputation = plan_retry(RetryRequest(ProjectRequest(root)))
    assert isinstance(recomputation.request, BackfillRequest)
    assert (recomputation.request.until, recomputation.request.replaces, recomputation.request.by) == (
        until,
        True,
        "ts",
    )
    assert "--replace --by ts a" in recomputation.text


def test_a_recorded_command_is_shown_as_it_could_be_written(root: Path) -> None:
    """The command of a record has its options, quoted for a shell."""
    given = run_request(root, selection=Selection(("tag:a b",)), full_refresh=True, limits=RunLimits(fail_fast=True))

    expected = "sqlstream build --target prod --select 'tag:a b' --full-refresh --fail-fast"
    assert command_line(run_arguments(given, "build")) == expected
