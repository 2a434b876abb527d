"""The options of the commands that start queries, `run`, `build` and `submit`, and the request that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from sqlstream.app.request import CAUGHT_UP, FIRST_BATCH, MEMORY_ROWS, ProjectRequest, RunOptions, RunRequest, Selection
from sqlstream.cli.duration import Duration
from sqlstream.cli.options import limit_option
from sqlstream.cli.output import output_option
from sqlstream.state.runs.limits import RunLimits

AnyCommand = Callable[..., Any]

threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    envvar="SQLSTREAM_THREADS",
    show_envvar=True,
    help="Maximum number of bounded queries to run concurrently (default: the target's threads).",
)

full_refresh_option = click.option(
    "-f",
    "--full-refresh",
    is_flag=True,
    envvar="SQLSTREAM_FULL_REFRESH",
    show_envvar=True,
    help="Start all selected queries over with new checkpoints and outputs. Keeps the old ones.",
)

log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="SQLSTREAM_LOG_FORMAT",
    show_envvar=True,
    help="Text, or one JSON object per line.",
)

START_OPTIONS = (
    click.option(
        "--available-now",
        is_flag=True,
        envvar="SQLSTREAM_AVAILABLE_NOW",
        show_envvar=True,
        help="Process the available input and end, regardless of the models' triggers.",
    ),
    click.option(
        "-x",
        "--fail-fast/--no-fail-fast",
        default=False,
        envvar="SQLSTREAM_FAIL_FAST",
        show_envvar=True,
        help="Stop all queries when one fails for good (default: the others continue).",
    ),
    threads_option,
    click.option(
        "--accept-state-change",
        multiple=True,
        metavar="SELECTOR...",
        envvar="SQLSTREAM_ACCEPT_STATE_CHANGE",
        show_envvar=True,
        help="Changed queries that keep their state; same syntax as --select.",
    ),
    click.option(
        "--migrate",
        multiple=True,
        metavar="SELECTOR...",
        envvar="SQLSTREAM_MIGRATE",
        show_envvar=True,
        help="Repartition the state of these queries to the target's `spark.sql.shuffle.partitions`; "
        "same syntax as --select.",
    ),
    full_refresh_option,
    click.option(
        "--switch-when",
        type=click.Choice([FIRST_BATCH, CAUGHT_UP]),
        envvar="SQLSTREAM_SWITCH_WHEN",
        show_envvar=True,
        help="When readers see the version that --full-refresh starts: after its first batch (default), or when it has "
        "caught up.",
    ),
    click.option(
        "--parallel",
        multiple=True,
        metavar="SELECTOR...",
        envvar="SQLSTREAM_PARALLEL",
        show_envvar=True,
        help="Run the new version of these queries in parallel with the current one; same syntax as --select.",
    ),
    click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        envvar="SQLSTREAM_METRICS_PORT",
        show_envvar=True,
        help="Serve metrics for Prometheus, and health for probes, on this port (0: any free port).",
    ),
    click.option(
        "--metrics-host",
        default="127.0.0.1",
        show_default=True,
        envvar="SQLSTREAM_METRICS_HOST",
        show_envvar=True,
        help="The address to listen on for --metrics-port; 0.0.0.0 for all.",
    ),
    log_format_option,
    limit_option(MEMORY_ROWS, "Maximum number of rows to show of each memory sink at the end; JSON has all rows."),
    output_option("Lines, or one JSON object at the end, with the lines on stderr."),
)


def start_options(command: AnyCommand) -> AnyCommand:
    """Adds the options that say how queries start, and how their events are printed.

    The command gets them as `request`, a `RunRequest`, with all other options that are fields of `RunOptions`;
    `log_format` and `output` are passed on. Needs `project_options` and `selection_options` above it.
    """

    @wraps(command)
    def with_request(
        project: ProjectRequest,
        selection: Selection,
        debug: bool,
        log_format: str,
        output: str,
        limit: int,
        **options: Any,
    ) -> object:
        is_json = "json" in (log_format, output)
        limits = {field.name: options.pop(field.name) for field in fields(RunLimits) if field.name in options}
        recorded = {field.name: options.pop(field.name) for field in fields(RunOptions) if field.name in options}
        request = RunRequest(
            project=project,
            selection=selection,
            limits=RunLimits(**limits),
            debug=debug,
            console_to_stderr=is_json,
            limit=None if is_json else limit,
            **recorded,
        )
        return command(request=request, log_format=log_format, output=output, **options)

    # The decorator that is applied last is the first in the help.
    for option in reversed(START_OPTIONS):
        with_request = option(with_request)
    return with_request


BOUND_OPTIONS = (
    click.option(
        "--for",
        "for_seconds",
        type=Duration(),
        envvar="SQLSTREAM_FOR",
        show_envvar=True,
        help="Stop after this time, as Ctrl-C does: 90s, 5m, 2h or 1d.",
    ),
    click.option(
        "--until-idle",
        "until_idle_seconds",
        type=Duration(),
        envvar="SQLSTREAM_UNTIL_IDLE",
        show_envvar=True,
        help="Stop when no query has read anything for this time.",
    ),
    click.option(
        "--standby",
        is_flag=True,
        envvar="SQLSTREAM_STANDBY",
        show_envvar=True,
        help="Wait while another run has one of the queries, and take over when that run ends or is lost.",
    ),
)


def bound_options(command: AnyCommand) -> AnyCommand:
    """Adds --for, --until-idle and --standby: when a run ends and begins. Needs `start_options` above it."""
    for option in reversed(BOUND_OPTIONS):
        command = option(command)
    return command
