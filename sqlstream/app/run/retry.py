"""`sqlstream retry`: repeats what failed, was skipped or did not end in the last command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlstream.app.backfill.backfill import BackfillRequest, read_backfill
from sqlstream.app.data_tests.results import DataTestRequest
from sqlstream.app.last_command import HIDDEN, LastCommand, command_line, read_last, read_run_request, read_selection
from sqlstream.app.loading.artifacts import RUN_RESULTS
from sqlstream.app.request import ProjectRequest, RunRequest, UnitTestRequest
from sqlstream.app.run.build import build_models
from sqlstream.app.run.recorded import RunOutcome
from sqlstream.app.run.run import run_models
from sqlstream.app.status.status import RunStatus
from sqlstream.compiler.graph import DATA_TEST, UNIT_TEST
from sqlstream.errors import UsageError
from sqlstream.numbers import plural
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.project.wording import quoted
from sqlstream.state.runs.events import RunEvent


@dataclass(frozen=True)
class RetryRequest:
    """What to retry: the last command of `project`, or the one whose run_results.json is in the folder `state`.

    `threads` and `full_refresh` override those of that command; with `replaces_vars`, so do the variables of `project`.
    Its target can only be the same one. With `is_json`, console sinks print to stderr.
    """

    project: ProjectRequest
    state: Path | None = None
    replaces_vars: bool = False
    threads: int | None = None
    full_refresh: bool = False
    debug: bool = False
    is_json: bool = False


@dataclass(frozen=True)
class Retry:
    """A command to repeat: its name, its request (None if there is nothing to retry), and a sentence about it."""

    which: str
    request: RunRequest | UnitTestRequest | DataTestRequest | BackfillRequest | None
    text: str

    @property
    def run(self) -> Callable[[Callable[[RunEvent], None]], RunOutcome]:
        """The function that repeats a `run` or a `build`, and passes its events to a callback."""
        request = self.request
        if not isinstance(request, RunRequest):
            raise TypeError(f"{self.which} starts no queries")
        models = build_models if self.which == "build" else run_models
        return lambda notify: models(request, notify)


def plan_retry(request: RetryRequest) -> Retry:
    """Returns what to repeat. Starts nothing. Raises: UsageError if there is no command that can be repeated."""
    folder = request.state or find_project_root(request.project.folder) / ARTIFACTS_FOLDER
    last = read_last(folder)
    if last.life is RunStatus.RUNNING:
        raise UsageError(f"`{command_line(last.arguments)}` is still running; wait for its end")
    if not last.failed and not last.is_refused:
        which = "" if last.status == "success" else "every node of "
        return Retry(last.which, None, f"Nothing to retry: {which}`{command_line(last.arguments)}` succeeded")
    project = _project(last, request, f"{request.state or ARTIFACTS_FOLDER}/{RUN_RESULTS}")
    try:
        return Retry(last.which, _request(last, project, request), _text(last))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"the arguments in run_results.json cannot be read: {error!r}; run the command again"
        ) from error


def _project(last: LastCommand, request: RetryRequest, file: str) -> ProjectRequest:
    """Returns the project with the target and the variables of the last command, which `file` describes.

    Raises: UsageError.
    """
    project, target = request.project, last.target or last.arguments.get("target")
    if project.target is not None and target is not None and project.target != target:
        problem = f"the last command used the target {quoted(target)}, and `retry` repeats it there"
        raise UsageError(f"{problem}; remove --target, or run the command itself with --target {project.target}")
    is_hidden = bool(last.arguments.get(HIDDEN))
    if is_hidden and not project.variables:
        raise UsageError("the variables of the last command contained a secret, so they are not recorded; give --vars")
    known = project.variables if is_hidden or request.replaces_vars else last.arguments.get("vars", {})
    return replace(
        project,
        target=target or project.target,
        variables=dict(known),
        partial_parse=project.partial_parse and bool(last.arguments.get("partial_parse", True)),
        target_named_by=file,
    )


def _request(
    last: LastCommand, project: ProjectRequest, request: RetryRequest
) -> RunRequest | UnitTestRequest | DataTestRequest | BackfillRequest:
    arguments = last.arguments
    if last.which == "backfill":
        return read_backfill(arguments, project)
    selection = read_selection(arguments)
    if not last.is_refused:
        nodes = frozenset(entry["unique_id"] for entry in last.failed)
        selection = replace(selection, select=(), exclude=(), selector=None, nodes=nodes)
    if last.which == "test" and arguments.get("data"):
        return DataTestRequest(project, selection, bool(arguments["fail_fast"]), bool(arguments["store_failures"]))
    if last.which == "test":
        return UnitTestRequest(project, selection, bool(arguments["fail_fast"]), bool(arguments["equivalence"]))
    if last.which not in ("run", "build"):
        raise UsageError(f"`retry` cannot repeat `sqlstream {last.which}`; run it again")
    found = read_run_request(arguments, project, selection)
    # a retry of a retry goes back to when the first command began
    since = found.refreshed_since or datetime.fromisoformat(last.started_at)
    return replace(
        found,
        limits=replace(found.limits, threads=request.threads or found.limits.threads),
        full_refresh=found.full_refresh or request.full_refresh,
        refreshed_since=since if found.full_refresh and not request.full_refresh else None,
        debug=request.debug,
        console_to_stderr=request.is_json,
        limit=None if request.is_json else found.limit,
    )


def _text(last: LastCommand) -> str:
    """Returns what `retry` does."""
    command = f"`{command_line(last.arguments)}`"
    if last.is_refused:
        why = "although no node did" if last.entries else "before it started a node"
        return f"Retrying all of {command}, which failed {why}"
    names = ", ".join(_name(entry["unique_id"]) for entry in last.failed)
    return f"Retrying {command}: {len(last.failed)} of {plural(len(last.entries), 'node')}: {names}"


_TESTS = {UNIT_TEST: "unit test", DATA_TEST: "data test"}


def _name(unique_id: str) -> str:
    kind, _, name = unique_id.split(".", 2)
    return f"{_TESTS[kind]} {name}" if kind in _TESTS else name
