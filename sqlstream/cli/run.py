"""`sqlstream run`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from sqlstream.app.request import RunRequest
from sqlstream.app.run import run_models
from sqlstream.cli.options import project_options, project_request, selection_of, selection_options
from sqlstream.errors import FindingsError
from sqlstream.report.run_json import JsonReporter
from sqlstream.report.run_text import TextReporter, summary_text
from sqlstream.state.events import Warned

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType[float]):
    """`90`, `90s`, `5m`, `2h` or `1d` as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns the seconds; fails as click does."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a duration such as 60s, 5m or 2h", param, ctx)
        return float(match.group(1)) * SECONDS[match.group(2) or "s"]


@click.command("run")
@project_options
@selection_options
@click.option(
    "--available-now",
    is_flag=True,
    envvar="SQLSTREAM_AVAILABLE_NOW",
    help="Process what is there, in every query, then end.",
)
@click.option(
    "--for",
    "stop_after",
    type=Duration(),
    envvar="SQLSTREAM_FOR",
    help="Stop by itself after this long, for example 60s or 5m.",
)
@click.option(
    "--accept-state-change", multiple=True, metavar="MODEL", help="Resume a changed stateful query on its old state."
)
@click.option(
    "--full-refresh",
    multiple=True,
    metavar="MODEL",
    help="Start over: a new checkpoint and output; the old ones are kept.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="SQLSTREAM_LOG_FORMAT",
    help="Lines for people, or JSON lines.",
)
def run(
    project_dir: Path,
    target: str | None,
    variables: str | None,
    debug: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    available_now: bool,
    stop_after: float | None,
    accept_state_change: tuple[str, ...],
    full_refresh: tuple[str, ...],
    log_format: str,
) -> int:
    """Start the selected terminal models as streams and show what they do. Ctrl-C stops after the running batches."""
    request = RunRequest(
        project=project_request(project_dir, target, variables),
        selection=selection_of(select, exclude),
        available_now=available_now,
        stop_after_seconds=stop_after,
        accept_state_change=accept_state_change,
        full_refresh=full_refresh,
        debug=debug,
        console_to_stderr=log_format == "json",
    )
    if log_format == "json":
        return _run_for_machines(request)
    outcome = run_models(request, TextReporter(click.echo))
    click.echo(summary_text(outcome.results, len(outcome.warnings), Path.cwd()))
    return 0 if outcome.succeeded else 1


def _run_for_machines(request: RunRequest) -> int:
    """The same with JSON lines for everything that is told, findings that refuse the run included."""
    reporter = JsonReporter(click.echo)
    try:
        outcome = run_models(request, reporter)
    except FindingsError as error:
        for finding in error.findings:
            reporter(Warned(finding))
        reporter.done((), succeeded=False)
        return 1
    reporter.done(outcome.results, succeeded=outcome.succeeded)
    return 0 if outcome.succeeded else 1
