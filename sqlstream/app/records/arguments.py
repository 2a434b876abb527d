"""The arguments of a command as run_results.json records them, and the request to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sqlstream.app.request import ProjectRequest, RunRequest, Selection, UnitTestRequest
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.limits import RunLimits

HIDDEN = "vars_hidden"
"""The argument that says that `vars` contain secrets, which are not recorded."""

_FLAGS = {
    "target": "--target",
    "select": "--select",
    "exclude": "--exclude",
    "selector": "--selector",
    "state": "--state",
    "resource_types": "--resource-type",
    "exclude_resource_types": "--exclude-resource-type",
    "available_now": "--available-now",
    "full_refresh": "--full-refresh",
    "fail_fast": "--fail-fast",
    "equivalence": "--equivalence",
    "threads": "--threads",
    "accept_state_change": "--accept-state-change",
    "migrate": "--migrate",
    "parallel": "--parallel",
    "switch_when": "--switch-when",
    "from": "--from",
    "to": "--to",
    "full_range": "--full-range",
}
"""The options to show of a recorded command, in this order."""


def run_arguments(request: RunRequest, which: str) -> dict[str, Any]:
    """Returns the arguments of `run` or `build`, with dbt's names where dbt has the option."""
    limits, since = request.limits, request.refreshed_since
    return {
        "which": which,
        **project_arguments(request.project),
        **selection_arguments(request.selection),
        "available_now": request.available_now,
        "full_refresh": request.full_refresh,
        "refreshed_since": None if since is None else since.isoformat(),
        "fail_fast": limits.fail_fast,
        "threads": limits.threads,
        "for_seconds": limits.after_seconds,
        "until_idle_seconds": limits.idle_seconds,
        "accept_state_change": list(request.accept_state_change),
        "migrate": list(request.migrate),
        "parallel": list(request.parallel),
        "switch_when": request.switch_when,
        "metrics_port": request.metrics_port,
        "metrics_host": request.metrics_host,
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
    """Returns the request of a recorded `run` or `build` for this `project` and `selection`.

    Raises: KeyError, TypeError, ValueError if the arguments are not as sqlstream records them.
    """
    since = arguments["refreshed_since"]
    return RunRequest(
        project=project,
        selection=selection,
        available_now=bool(arguments["available_now"]),
        limits=RunLimits(
            arguments["for_seconds"],
            arguments["until_idle_seconds"],
            bool(arguments["fail_fast"]),
            arguments["threads"],
        ),
        accept_state_change=tuple(arguments["accept_state_change"]),
        migrate=tuple(arguments["migrate"]),
        full_refresh=bool(arguments["full_refresh"]),
        refreshed_since=None if since is None else datetime.fromisoformat(since),
        parallel=tuple(arguments["parallel"]),
        switch_when=arguments.get("switch_when"),
        metrics_port=arguments["metrics_port"],
        metrics_host=str(arguments["metrics_host"]),
    )


def read_selection(arguments: Mapping[str, Any]) -> Selection:
    """Returns a recorded selection. Raises: KeyError, TypeError, as `read_run_request`."""
    nodes, state = arguments["nodes"], arguments["state"]
    return Selection(
        tuple(arguments["select"]),
        tuple(arguments["exclude"]),
        tuple(arguments["resource_types"]),
        tuple(arguments["exclude_resource_types"]),
        arguments["selector"],
        None if state is None else Path(state),
        None if nodes is None else frozenset(nodes),
    )


def command_line(arguments: Mapping[str, Any]) -> str:
    """Returns a recorded command as the user could write it."""
    return shlex.join(["sqlstream", *_words(arguments)])


def _words(arguments: Mapping[str, Any]) -> Iterator[str]:
    yield str(arguments["which"])
    for name, flag in _FLAGS.items():
        value = arguments.get(name)
        if value is True:
            yield flag
        elif isinstance(value, list):
            yield from (word for each in value for word in (flag, str(each)))
        elif value not in (None, False):
            yield from (flag, str(value))
    if arguments["which"] == "backfill":
        yield str(arguments["model"])
