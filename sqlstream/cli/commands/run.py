"""`sqlstream run`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO, cast

import click

from sqlstream.app.request import MEMORY_ROWS, ProjectRequest, RunRequest, Selection
from sqlstream.app.run import run_models
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import limit_option, project_options, selection_options
from sqlstream.cli.output import DONE, FAILED, RunLines, RunScreen, echo_trace, is_screen
from sqlstream.errors import FindingsError
from sqlstream.report.runs.as_json import JsonReporter
from sqlstream.report.runs.live import LiveReporter
from sqlstream.report.runs.text import TextReporter, summary_text
from sqlstream.state.runs.events import WarningEmitted
from sqlstream.state.runs.limits import RunLimits

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_SECONDS = 100 * 365 * SECONDS["d"]
"""A hundred years: a longer time is a mistake, and threads cannot wait for it."""


class Duration(click.ParamType[float]):
    """`90`, `90s`, `5m`, `2h` or `1d` as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns the seconds; fails as click does."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
        seconds = float(match.group(1)) * SECONDS[match.group(2) or "s"] if match else 0.0
        if not 0 < seconds < LONGEST_SECONDS:
            self.fail(f"{str(value)!r} is not a duration greater than zero, such as 60s, 5m or 2h", param, ctx)
        return seconds


@click.command("run", short_help="Start models with a sink as streaming queries.")
@project_options
@selection_options
@click.option(
    "--available-now",
    is_flag=True,
    envvar="SQLSTREAM_AVAILABLE_NOW",
    show_envvar=True,
    help="Process the available input and end, regardless of the models' triggers.",
)
@click.option(
    "--for",
    "stop_after",
    type=Duration(),
    envvar="SQLSTREAM_FOR",
    show_envvar=True,
    help="Stop after this time, as Ctrl-C does: 90s, 5m, 2h or 1d.",
)
@click.option(
    "--until-idle",
    type=Duration(),
    envvar="SQLSTREAM_UNTIL_IDLE",
    show_envvar=True,
    help="Stop when no query has read anything for this time.",
)
@click.option(
    "-x",
    "--fail-fast/--no-fail-fast",
    default=False,
    envvar="SQLSTREAM_FAIL_FAST",
    show_envvar=True,
    help="Stop all queries when one fails for good (default: the others continue).",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    envvar="SQLSTREAM_THREADS",
    show_envvar=True,
    help="Maximum number of self-ending queries that run at the same time (default: the target's threads).",
)
@click.option(
    "--accept-state-change",
    multiple=True,
    metavar="SELECTOR...",
    envvar="SQLSTREAM_ACCEPT_STATE_CHANGE",
    show_envvar=True,
    help="Changed queries that keep their state; same syntax as --select.",
)
@click.option(
    "--migrate",
    multiple=True,
    metavar="SELECTOR...",
    envvar="SQLSTREAM_MIGRATE",
    show_envvar=True,
    help="Queries whose state moves to the target's number of shuffle partitions; same syntax as --select.",
)
@click.option(
    "-f",
    "--full-refresh",
    is_flag=True,
    envvar="SQLSTREAM_FULL_REFRESH",
    show_envvar=True,
    help="Start all selected queries over with new checkpoints and outputs. Keeps the old ones.",
)
@click.option(
    "--parallel",
    multiple=True,
    metavar="SELECTOR...",
    envvar="SQLSTREAM_PARALLEL",
    show_envvar=True,
    help="Changed queries whose new version runs beside the current one; same syntax as --select.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="SQLSTREAM_LOG_FORMAT",
    show_envvar=True,
    help="Text, or one JSON object per line.",
)
@limit_option(MEMORY_ROWS, "Maximum number of rows to show of each memory sink at the end; JSON has all rows.")
def run(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    available_now: bool,
    stop_after: float | None,
    until_idle: float | None,
    fail_fast: bool,
    threads: int | None,
    accept_state_change: tuple[str, ...],
    migrate: tuple[str, ...],
    full_refresh: bool,
    parallel: tuple[str, ...],
    log_format: str,
    limit: int,
) -> int:
    """Start each selected model that names a sink as a query. Print a line for every batch, or in a terminal a table
    of all queries.

    A query with the trigger available_now or once ends by itself. Others run until Ctrl-C, --for or --until-idle:
    each query then stops after its running batch, and the next run continues there. A run restarts a failed query
    as its `retries` define.
    """
    require_spark_system("run")
    request = RunRequest(
        project=project,
        selection=selection,
        available_now=available_now,
        limits=RunLimits(stop_after, until_idle, fail_fast, threads),
        accept_state_change=accept_state_change,
        migrate=migrate,
        full_refresh=full_refresh,
        parallel=parallel,
        debug=debug,
        console_to_stderr=log_format == "json",
        limit=None if log_format == "json" else limit,
    )
    code = _run(request, log_format)
    if code == DONE:
        _build_class_archive()
    return code


def _run(request: RunRequest, log_format: str) -> int:
    if log_format == "json":
        return _run_as_json(request, RunLines())
    return _run_on_screen(request, RunLines()) if is_screen() else _run_as_text(request, RunLines())


def _build_class_archive() -> None:
    """Builds the archive with which Spark starts faster from the next run on."""
    from sqlstream.app.running.class_archive import build_later  # pyspark is loaded by now, and not for --help

    line = build_later(os.environ)
    if line is not None:
        click.echo(line, err=True)


def _run_as_text(request: RunRequest, write: RunLines) -> int:
    outcome = run_models(request, TextReporter(write))
    write(summary_text(outcome.results, len(outcome.warnings), Path.cwd()))
    return DONE if outcome.succeeded else FAILED


def _run_on_screen(request: RunRequest, write: RunLines) -> int:
    """Runs with a table that is redrawn, instead of a line for every batch."""
    reporter = LiveReporter(cast("IO[str]", RunScreen()))
    try:
        outcome = run_models(request, reporter)
    finally:
        reporter.close()
    warnings = len(outcome.warnings)
    write(
        reporter.summary(outcome.results, warnings, Path.cwd()) or summary_text(outcome.results, warnings, Path.cwd())
    )
    return DONE if outcome.succeeded else FAILED


def _run_as_json(request: RunRequest, write: RunLines) -> int:
    """Runs with one JSON line for every event, including the findings that refuse the run."""
    reporter = JsonReporter(write)
    try:
        outcome = run_models(request, reporter)
    except FindingsError as error:
        for finding in error.findings:
            reporter(WarningEmitted(finding))
        reporter.done((), succeeded=False)
        if request.debug:
            echo_trace()
        return FAILED
    reporter.done(outcome.results, succeeded=outcome.succeeded)
    return DONE if outcome.succeeded else FAILED
