"""The options that several commands share, and the requests that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sqlstream.app.request import SHOWN_ROWS, ProjectRequest, Selection, silent
from sqlstream.cli.output import echo_progress
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.wording import quoted
from sqlstream.state.runs.shards import Shard

EXAMPLE = "{min_fare: 3}"

_NAME = re.compile(r"[^\W\d][\w.-]*")
_NEARLY = re.compile(r"\s*\{?\s*([^\W\d][\w.-]*)\s*[:=]\s*([^\s,:={}\[\]][^,:={}\[\]]*?)\s*\}?\s*")
"""A single variable, written `a=3`, `a:3` or `{a:3}`."""


def read_variables(text: str | None) -> dict[str, object]:
    """Returns the variables that a YAML mapping of names to values sets. Warns about words that are read as booleans.

    Raises: UsageError for any other text, and for keys that are not names. The common case is `a:3`, which YAML reads
    as one key without a value.
    """
    if not text:
        return {}
    from sqlstream.project.configuration.validate import boolean_words  # only --vars needs PyYAML here
    from sqlstream.project.yaml import parse_yaml, plain

    try:
        node = parse_yaml(text, "--vars")
    except FindingsError as error:
        problem = f"{quoted(text)} is not a YAML mapping{_detail(error.findings[0])}"
        raise _refused(problem, text) from error
    found = plain(node)
    variables = dict(found) if isinstance(found, dict) else {}
    for warning in boolean_words(node, ()):
        click.echo(f"--vars: warning: {warning.message}; {warning.fix}", err=True)
    for name, value in variables.items():
        if ":" in name and value is None:
            raise _refused(f"{quoted(name)} has no space after the colon", text)
        if not _NAME.fullmatch(name):
            raise _refused(f"{quoted(name)} is not a valid name for a variable", text)
    return variables


def _detail(finding: Finding) -> str:
    if finding.code == "yaml-syntax":
        return f": {finding.why}"
    return ": it has a duplicate key" if finding.code == "yaml-duplicate-key" else ""


def _refused(problem: str, text: str) -> UsageError:
    meant = _NEARLY.fullmatch(text)
    right = f"--vars '{{{meant[1]}: {meant[2]}}}'" if meant else f"for example --vars '{EXAMPLE}'"
    return UsageError(f"--vars: {problem}; use {right}")


AnyCommand = Callable[..., Any]
Command = TypeVar("Command", bound=AnyCommand)

token_option = click.option(
    "--token",
    metavar="TEXT",
    envvar="SQLSTREAM_UI_TOKEN",
    show_envvar=True,
    help="Token that a browser needs (default: none on a loopback address, otherwise a random one).",
)

project_dir_option = click.option(
    "--project-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    envvar="SQLSTREAM_PROJECT_DIR",
    show_envvar=True,
    help="Project folder, or a folder in it (default: current folder).",
)


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
        help="Nodes to include (default: all): a name or folder, tag:x, source:a.b, sink:x, exposure:x, path:x, "
        "config.x:y, state:modified or selector:x. +x adds upstream nodes, x+ downstream nodes. Space means or, comma "
        "means and.",
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


class _ShardType(click.ParamType[Shard]):
    """`2/8` as a `Shard`."""

    name = "shard"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """Returns the shard; fails as click does."""
        try:
            return Shard.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


SHARD_OPTION = click.option(
    "--shard",
    type=_ShardType(),
    metavar="K/N",
    envvar="SQLSTREAM_SHARD",
    show_envvar=True,
    help="Only part K of the N parts of the selected queries, for several runs of one project: 2/8.",
)

RESOURCE_TYPES = click.Choice(["exposure", "model", "seed", "sink", "source", "test", "unit_test"])


def limit_option(default: int, text: str) -> Callable[[Command], Command]:
    """Returns the decorator that adds `--limit`, a number of rows, with `text` as help."""
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


def project_options(command: AnyCommand) -> AnyCommand:
    """Adds the options that say which project, for which target, with which variables.

    The command gets them as `project`, a `ProjectRequest`, and `--debug` as `debug`.
    """

    @wraps(command)
    def with_project(
        project_dir: Path, target: str | None, variables: str | None, partial_parse: bool, **options: Any
    ) -> object:
        project = ProjectRequest(
            project_dir.resolve(),
            target,
            read_variables(variables),
            dict(os.environ),
            target_named_by=_target_named_by(),
            partial_parse=partial_parse,
            notify=silent if options.get("quiet") else echo_progress,
        )
        return command(project=project, **options)

    return _with_options(with_project, PROJECT_OPTIONS)


def selection_options(command: AnyCommand) -> AnyCommand:
    """Adds --select and --exclude, in dbt's grammar, --selector and --state; the command gets them as `selection`."""

    @wraps(command)
    def with_selection(
        select: tuple[str, ...], exclude: tuple[str, ...], selector: str | None, state: Path | None, **options: Any
    ) -> object:
        _check_selectors(select, exclude, selector)
        return command(selection=Selection(select, exclude, selector=selector, state=state), **options)

    return _with_options(with_selection, SELECTION_OPTIONS)


def shard_option(command: AnyCommand) -> AnyCommand:
    """Adds --shard, which divides the queries of the selection; needs `selection_options` above it."""

    @wraps(command)
    def with_shard(selection: Selection, shard: Shard | None, **options: Any) -> object:
        return command(selection=replace(selection, shard=shard), **options)

    return _with_options(with_shard, (SHARD_OPTION,))


def type_options(command: AnyCommand) -> AnyCommand:
    """Adds the options that choose by the type of a node; needs `selection_options` above it."""

    @wraps(command)
    def with_types(
        selection: Selection, types: tuple[str, ...], excluded_types: tuple[str, ...], **options: Any
    ) -> object:
        return command(selection=replace(selection, resource_types=types, excluded_types=excluded_types), **options)

    return _with_options(with_types, TYPE_OPTIONS)


def _with_options(command: AnyCommand, options: Sequence[Callable[[AnyCommand], AnyCommand]]) -> AnyCommand:
    # The decorator that is applied last is the first in the help.
    for option in reversed(options):
        command = option(command)
    return command


def _target_named_by() -> str:
    source = click.get_current_context().get_parameter_source("target")
    return "SQLSTREAM_TARGET" if source is ParameterSource.ENVIRONMENT else "--target"


def _check_selectors(select: tuple[str, ...], exclude: tuple[str, ...], selector: str | None) -> None:
    """Raises: UsageError for an empty selector, which dbt reads as everything; the usual cause is an unset shell
    variable. Also for --selector together with --select or --exclude, which dbt silently ignores.
    """
    named = () if selector is None else (selector,)
    for flag, selectors in (("--select", select), ("--exclude", exclude), ("--selector", named)):
        if any(not text.strip() for text in selectors):
            raise UsageError(f"{flag} is empty; use a selector such as `my_model` or `tag:daily`, or remove {flag}")
    if named and (select or exclude):
        flag = "--select" if select else "--exclude"
        raise UsageError(f"--selector cannot be combined with {flag}; use {flag} selector:{selector}")
