"""The options that several commands share, and what they mean together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sqlstream.app.request import ProjectRequest, Selection, silent
from sqlstream.app.show import SHOWN_ROWS
from sqlstream.cli.output import echo_progress
from sqlstream.cli.variables import EXAMPLE, read_variables
from sqlstream.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

project_dir_option = click.option(
    "--project-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    envvar="SQLSTREAM_PROJECT_DIR",
    show_envvar=True,
    help="Project folder, or a folder in it (default: current folder).",
)


PARTIAL_PARSE = "sqlstream.partial_parse"
"""Where click keeps whether the cache is to be used: every command has the option, and none does anything with it."""


def _keep_partial_parse(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[PARTIAL_PARSE] = value


PROJECT_OPTIONS = (
    project_dir_option,
    click.option(
        "-t",
        "--target",
        metavar="NAME",
        envvar="SQLSTREAM_TARGET",
        show_envvar=True,
        help="Target to use (default: default_target in project.yml).",
    ),
    click.option(
        "--vars",
        "variables",
        metavar="YAML",
        envvar="SQLSTREAM_VARS",
        show_envvar=True,
        help=f"Variables that override those of project.yml, for example '{EXAMPLE}'.",
    ),
    click.option(
        "--partial-parse/--no-partial-parse",
        default=True,
        envvar="SQLSTREAM_PARTIAL_PARSE",
        show_envvar=True,
        expose_value=False,
        callback=_keep_partial_parse,
        help="Reuse cached results of unchanged files (default), or compile everything.",
    ),
    click.option(
        "--debug",
        is_flag=True,
        envvar="SQLSTREAM_DEBUG",
        show_envvar=True,
        help="Show the Python traceback of an error.",
    ),
)

SELECTION_OPTIONS = (
    click.option(
        "-s",
        "--select",
        "-m",
        "--models",
        "select",
        metavar="SELECTOR...",
        multiple=True,
        envvar="SQLSTREAM_SELECT",
        show_envvar=True,
        help="Nodes to include (default: all): a name or folder, tag:x, source:a.b, sink:x, path:x, config.x:y, "
        "state:modified or selector:x. +x adds upstream nodes, x+ downstream nodes. Space means or, comma means and.",
    ),
    click.option(
        "--exclude",
        metavar="SELECTOR...",
        multiple=True,
        envvar="SQLSTREAM_EXCLUDE",
        show_envvar=True,
        help="Nodes to exclude from the selection.",
    ),
    click.option(
        "--selector",
        metavar="NAME",
        envvar="SQLSTREAM_SELECTOR",
        show_envvar=True,
        help="Selector from selectors.yml to use instead of --select and --exclude.",
    ),
    click.option(
        "--state",
        metavar="PATH",
        type=click.Path(path_type=Path),
        envvar="SQLSTREAM_STATE",
        show_envvar=True,
        help="Saved manifest.json, or its folder, for state:modified and state:new.",
    ),
)


def limit_option(default: int, text: str) -> Callable[[Command], Command]:
    """Returns the option that says how many rows are shown."""
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        envvar="SQLSTREAM_LIMIT",
        show_envvar=True,
        help=text,
    )


show_limit_option = limit_option(SHOWN_ROWS, "Maximum number of rows to show of each node.")

RESOURCE_TYPES = click.Choice(["model", "seed", "source", "unit_test"])

TYPE_OPTIONS = (
    click.option(
        "--resource-types",
        "--resource-type",
        "types",
        multiple=True,
        type=RESOURCE_TYPES,
        envvar="SQLSTREAM_RESOURCE_TYPES",
        show_envvar=True,
        help="Include only this type; can be given more than once.",
    ),
    click.option(
        "--exclude-resource-types",
        "--exclude-resource-type",
        "excluded_types",
        multiple=True,
        type=RESOURCE_TYPES,
        envvar="SQLSTREAM_EXCLUDE_RESOURCE_TYPES",
        show_envvar=True,
        help="Exclude this type; can be given more than once.",
    ),
)


def project_options(command: Command) -> Command:
    """Adds the options that say which project, for which target, with which variables."""
    return _with_options(command, PROJECT_OPTIONS)


def selection_options(command: Command) -> Command:
    """Adds --select and --exclude, in dbt's grammar, --selector and --state."""
    return _with_options(command, SELECTION_OPTIONS)


def type_options(command: Command) -> Command:
    """Adds the options that choose by the type of a node."""
    return _with_options(command, TYPE_OPTIONS)


def _with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def project_request(
    project_dir: Path, target: str | None, variables: str | None, *, quiet: bool = False
) -> ProjectRequest:
    """Returns the request that the project options of the running command make; with `quiet` it tells of no progress.

    Raises: UsageError for --vars that are no mapping of names to values.
    """
    context = click.get_current_context()
    source = context.get_parameter_source("target")
    named_by = "SQLSTREAM_TARGET" if source is ParameterSource.ENVIRONMENT else "--target"
    return ProjectRequest(
        project_dir.resolve(),
        target,
        read_variables(variables),
        dict(os.environ),
        target_named_by=named_by,
        partial_parse=context.meta.get(PARTIAL_PARSE, True),
        notify=silent if quiet else echo_progress,
    )


def selection_of(
    select: tuple[str, ...], exclude: tuple[str, ...], selector: str | None, state: Path | None
) -> Selection:
    """Returns the selection that the selection options make.

    Raises: UsageError for an empty selector, which to dbt is everything; most often it is a variable of the shell that
    is not set. And for --selector together with the two that it stands for, which dbt leaves unused in silence.
    """
    named = () if selector is None else (selector,)
    for flag, selectors in (("--select", select), ("--exclude", exclude), ("--selector", named)):
        if any(not text.strip() for text in selectors):
            raise UsageError(f"{flag} is empty; use a selector such as `my_model` or `tag:daily`, or remove {flag}")
    if named and (select or exclude):
        flag = "--select" if select else "--exclude"
        raise UsageError(f"--selector cannot be combined with {flag}; use {flag} selector:{selector}")
    return Selection(select, exclude, selector=selector, state=state)
