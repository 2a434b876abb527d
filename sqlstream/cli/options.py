"""The options that several commands share, and what they mean together."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.yaml import parse_yaml, plain

Command = TypeVar("Command", bound=Callable[..., Any])


def project_options(command: Command) -> Command:
    """Adds the options that say which project, for which target, with which variables."""
    options = (
        click.option(
            "--project-dir",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path(),
            envvar="SQLSTREAM_PROJECT_DIR",
            help="The project's folder, or one below it. [default: the current folder]",
        ),
        click.option("-t", "--target", envvar="SQLSTREAM_TARGET", help="One of the targets of project.yml."),
        click.option(
            "--vars", "variables", envvar="SQLSTREAM_VARS", help="Variables as YAML, for example '{day: 2024-01-01}'."
        ),
        click.option("--debug", is_flag=True, envvar="SQLSTREAM_DEBUG", help="Show where an error happened."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def selection_options(command: Command) -> Command:
    """Adds --select and --exclude, in dbt's grammar."""
    options = (
        click.option(
            "-s",
            "--select",
            "-m",
            "--models",
            "select",
            multiple=True,
            envvar="SQLSTREAM_SELECT",
            help="What to select: names, folders, tag:x, source:a.b, sink:x, config.x:y, path:, +model+, @model.",
        ),
        click.option("--exclude", multiple=True, envvar="SQLSTREAM_EXCLUDE", help="What to leave out of it."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def project_request(project_dir: Path, target: str | None, variables: str | None) -> ProjectRequest:
    """Returns the request that the project options make. Raises: UsageError for --vars that are no YAML mapping."""
    return ProjectRequest(project_dir.resolve(), target, _variables(variables), dict(os.environ))


def selection_of(select: tuple[str, ...], exclude: tuple[str, ...], types: tuple[str, ...] = ()) -> Selection:
    """Returns the selection that the selection options make."""
    return Selection(select, exclude, types)


def _variables(text: str | None) -> dict[str, object]:
    if not text:
        return {}
    try:
        found = plain(parse_yaml(text, "--vars"))
    except FindingsError as error:
        raise UsageError(f"--vars is not a YAML mapping such as '{{day: 2024-01-01}}': {error}") from error
    return dict(found) if isinstance(found, dict) else {}
