"""The arguments of a command as run_results.json records them, and the request to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from sqlstream.app.request import ProjectRequest, RunOptions, RunRequest, Selection, UnitTestRequest
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.limits import RunLimits

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
