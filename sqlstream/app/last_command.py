"""The last command of a project in target/run_results.json: what it was, what of it failed, and the record of `test`
and `backfill`.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from sqlstream.app.loading.artifacts import RUN_RESULTS, RunRecord, write_run_results
from sqlstream.app.loading.load import Invocation
from sqlstream.app.request import ProjectRequest, RunOptions, RunRequest, Selection, UnitTestRequest
from sqlstream.app.status.status import RunStatus, run_status
from sqlstream.errors import Finding, UsageError
from sqlstream.history.reads import PastRun
from sqlstream.project.configuration.trigger import ENDING
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.processes import process_start
from sqlstream.state.runs.case_outcomes import Outcome
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.limits import RunLimits
from sqlstream.state.runs.shards import Shard
from sqlstream.state.runs.tracked_run import LiveStatus

RETRIED = frozenset(
    {
        Status.ERROR,
        Status.SKIPPED,
        Status.INTERRUPTED,
        Outcome.FAILED,
        Outcome.BROKEN,
        Outcome.SKIPPED,
        *LiveStatus,
        "fail",
    }
)
"""The statuses of nodes to repeat; `fail` is that of a data test. Nodes of a killed command are still pending or
running.
"""


@dataclass(frozen=True)
class LastCommand:
    """The last command: its arguments, its target (None if it did not load the project), its `status`, when it started
    (UTC, ISO 8601), and the entries of its nodes. `life` is whether its process still runs.
    """

    arguments: Mapping[str, Any]
    target: str | None
    status: str
    started_at: str
    invocation_id: str
    entries: Sequence[Mapping[str, Any]]
    life: RunStatus

    @property
    def which(self) -> str:
        """The name of the command."""
        return str(self.arguments["which"])

    @property
    def failed(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of the nodes to repeat: they failed, were skipped, or did not reach their end."""
        return tuple(entry for entry in self.entries if self._is_retried(entry))

    @property
    def is_refused(self) -> bool:
        """Whether it failed without a node that failed, for example because the project did not compile. A command that
        was killed after its last node did not fail.
        """
        return self.status != "success" and not self.failed and not (self.status == "running" and self.entries)

    def _is_retried(self, entry: Mapping[str, Any]) -> bool:
        """An endless query that was stopped has done its work, unless --fail-fast has stopped it. A data test that was
        skipped for a reason has no rows that can be read.
        """
        if entry.get("kind") == "data_test" and entry["status"] == Status.SKIPPED:
            return entry.get("reason") is None
        if entry["status"] != Status.STOPPED:
            return entry["status"] in RETRIED
        ends = entry["kind"] == "batch" or entry["trigger"] in ENDING
        return ends or (self.status == "error" and bool(self.arguments["fail_fast"]))


def read_last(folder: Path) -> LastCommand:
    """Returns the last command in the run_results.json of the folder. Raises: UsageError if there is none."""
    path = folder / RUN_RESULTS
    try:
        return _read(path)
    except OSError as error:
        problem = "does not exist" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise _nothing(f"{path} {problem}", "run `sqlstream build` or `sqlstream run` first") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{path} does not say which command wrote it"
        raise _nothing(problem, "run the command again; this sqlstream then records its arguments") from error


def _read(path: Path) -> LastCommand:
    content = json.loads(path.read_bytes())
    metadata, entries = content["metadata"], content["results"]
    for entry in entries:
        entry["unique_id"], entry["status"], entry["kind"]
    content["args"]["which"]
    succeeded = None if content["status"] == "running" else content["status"] == "success"
    identity = str(metadata["invocation_id"])
    run = PastRun(identity, pid=metadata["pid"], process_start=metadata["process_start"], succeeded=succeeded)
    return LastCommand(
        content["args"],
        metadata["target"],
        content["status"],
        str(metadata["started_at"]),
        identity,
        entries,
        run_status(run),
    )


def _nothing(problem: str, fix: str) -> UsageError:
    why = "`retry` repeats what failed in the last command that this file describes"
    return UsageError(f"there is no command to retry: {problem}\n  why: {why}\n  fix: {fix}")


@dataclass
class ShortCommand:
    """The record of a command that starts no query, in the project at `root`, with these `arguments`.

    Leaves the file alone while a run in another process updates it: `status` and its alerts need that one more. Does
    nothing if target/ cannot be written: the results are printed.
    """

    root: Path
    target: str | None
    arguments: Mapping[str, Any]
    invocation: Invocation = field(default_factory=Invocation)
    began: float = field(default_factory=time.monotonic)

    def write(
        self, entries: Iterable[Mapping[str, object]], succeeded: bool | None, findings: Iterable[Finding] = ()
    ) -> None:
        """Writes the entries of the nodes; `succeeded` is None until the end."""
        if self._is_used():
            return
        pid = os.getpid()
        record = RunRecord(
            invocation=self.invocation,
            target=self.target,
            succeeded=succeeded,
            findings=tuple(findings),
            results=tuple(entries),
            seconds=time.monotonic() - self.began,
            process={"pid": pid, "process_start": process_start(pid)},
            arguments=self.arguments,
        )
        with suppress(UsageError):
            write_run_results(self.root / ARTIFACTS_FOLDER, record)

    def _is_used(self) -> bool:
        try:
            last = read_last(self.root / ARTIFACTS_FOLDER)
        except UsageError:
            return False
        return last.life is RunStatus.RUNNING and last.invocation_id != self.invocation.id


HIDDEN = "vars_hidden"
"""The argument that says that `vars` contain secrets, which are not recorded."""

_FLAGS = {
    "for_seconds": "--for",
    "until_idle_seconds": "--until-idle",
    "resource_types": "--resource-type",
    "exclude_resource_types": "--exclude-resource-type",
}
"""The options whose names are not those of their arguments."""

_NO_OPTIONS = {"which", "model", "vars", HIDDEN, "partial_parse", "nodes", "refreshed_since"}
"""The arguments that a command line does not show: variables can be long, and `retry` adds some of the others."""

_LIMITS = tuple(field.name for field in fields(RunLimits))

_DEFAULTS = {**asdict(RunOptions()), **asdict(RunLimits())}


def run_arguments(request: RunRequest, which: str) -> dict[str, Any]:
    """Returns the arguments of `run` or `build`, with dbt's names where dbt has the option."""
    options = RunOptions(**{field.name: getattr(request, field.name) for field in fields(RunOptions)})
    recorded = TypeAdapter(RunOptions).dump_python(options, mode="json")
    limits = recorded.pop("limits")
    return {
        "which": which,
        **project_arguments(request.project),
        **selection_arguments(request.selection),
        **recorded,
        **limits,
    }


def project_arguments(project: ProjectRequest) -> dict[str, Any]:
    """Returns the arguments that select the project and its variables. Values of secrets are not among them."""
    variables = to_json(dict(project.variables), fallback=str).decode()
    hidden = Secrets(project.env).redact(variables) != variables
    return {
        "target": project.target,
        "vars": {} if hidden else dict(project.variables),
        HIDDEN: hidden,
        "partial_parse": project.partial_parse,
    }


def selection_arguments(selection: Selection) -> dict[str, Any]:
    """Returns the arguments of the selection. `nodes` are those that a retry has repeated, None for other commands."""
    return {
        "select": list(selection.select),
        "exclude": list(selection.exclude),
        "selector": selection.selector,
        "resource_types": list(selection.resource_types),
        "exclude_resource_types": list(selection.excluded_types),
        "state": None if selection.state is None else str(selection.state.resolve()),
        "nodes": None if selection.nodes is None else sorted(selection.nodes),
        "shard": None if selection.shard is None else str(selection.shard),
    }


def arguments_of_tests(request: UnitTestRequest) -> dict[str, Any]:
    """Returns the arguments of `test`."""
    return {
        "which": "test",
        **project_arguments(request.project),
        **selection_arguments(request.selection),
        "fail_fast": request.fail_fast,
        "equivalence": request.equivalence,
    }


def read_run_request(arguments: Mapping[str, Any], project: ProjectRequest, selection: Selection) -> RunRequest:
    """Returns the request of a recorded `run` or `build` for this `project` and `selection`. Options that an earlier
    sqlstream did not have and so did not record have their defaults.

    Raises: ValueError if the arguments are not as sqlstream records them.
    """
    limits = {name: arguments[name] for name in _LIMITS if name in arguments}
    options = TypeAdapter(RunOptions).validate_python({**arguments, "limits": limits})
    return RunRequest(project, selection, **{field.name: getattr(options, field.name) for field in fields(RunOptions)})


def read_selection(arguments: Mapping[str, Any]) -> Selection:
    """Returns a recorded selection. Raises: KeyError, TypeError."""
    nodes, state = arguments["nodes"], arguments["state"]
    shard = arguments.get("shard")  # not in records of earlier versions
    return Selection(
        tuple(arguments["select"]),
        tuple(arguments["exclude"]),
        tuple(arguments["resource_types"]),
        tuple(arguments["exclude_resource_types"]),
        arguments["selector"],
        None if state is None else Path(state),
        None if nodes is None else frozenset(nodes),
        None if shard is None else Shard.parse(shard),
    )


def command_line(arguments: Mapping[str, Any]) -> str:
    """Returns a recorded command as the user could write it."""
    return shlex.join(["sqlstream", *command_words(arguments)])


def command_words(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yields the words of a recorded command behind `sqlstream`, without variables."""
    yield str(arguments["which"])
    for name, value in arguments.items():
        if name in _NO_OPTIONS or value == _DEFAULTS.get(name):
            continue
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        if value is True:
            yield flag
        elif isinstance(value, list):
            yield from (word for each in value for word in (flag, str(each)))
        elif value not in (None, False):
            yield from (flag, str(value))
    if arguments["which"] == "backfill":
        yield str(arguments["model"])
