"""`sqlstream run`."""

from __future__ import annotations

import re
from dataclasses import replace

import click

from sqlstream.app.request import UI_HOST, UI_PORT, RunRequest, UiRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.run_options import start_options

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_SECONDS = 100 * 365 * SECONDS["d"]
"""A hundred years: a longer time is a mistake, and threads cannot wait for it."""


class Duration(click.ParamType[float]):
    """`90`, `90s`, `5m`, `2h` or `1d`, or an interval as in YAML, such as `90 seconds`, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns the seconds; fails as click does."""
        if isinstance(value, float):
            return value
        seconds = _seconds(str(value).strip())
        if not 0 < seconds < LONGEST_SECONDS:
            self.fail(f"{str(value)!r} is not a duration greater than zero, such as 60s, 5m or 2h", param, ctx)
        return seconds


def _seconds(text: str) -> float:
    """Returns the length of a duration, 0 if it is none."""
    from pydantic_core import PydanticCustomError

    from sqlstream.project.configuration.trigger import interval_seconds, parse_interval

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text)
    if match:
        return float(match.group(1)) * SECONDS[match.group(2) or "s"]
    try:
        return interval_seconds(parse_interval(text))
    except PydanticCustomError:
        return 0.0


@click.command("run")
@project_options
@selection_options
@start_options
@click.option(
    "--for",
    "for_seconds",
    type=Duration(),
    envvar="SQLSTREAM_FOR",
    show_envvar=True,
    help="Stop after this time, as Ctrl-C does: 90s, 5m, 2h or 1d.",
)
@click.option(
    "--until-idle",
    "until_idle_seconds",
    type=Duration(),
    envvar="SQLSTREAM_UNTIL_IDLE",
    show_envvar=True,
    help="Stop when no query has read anything for this time.",
)
@click.option(
    "--ui",
    is_flag=True,
    envvar="SQLSTREAM_UI",
    show_envvar=True,
    help="Serve the page of sqlstream ui during the run.",
)
@click.option(
    "--ui-host",
    default=UI_HOST,
    show_default=True,
    envvar="SQLSTREAM_UI_HOST",
    show_envvar=True,
    help="Address for --ui.",
)
@click.option(
    "--ui-port",
    type=click.IntRange(0, 65535),
    envvar="SQLSTREAM_UI_PORT",
    show_envvar=True,
    help=f"Port for --ui (default: the first free one from {UI_PORT} on).",
)
@click.option(
    "--ui-token",
    metavar="TEXT",
    envvar="SQLSTREAM_UI_TOKEN",
    show_envvar=True,
    help="Token for --ui (default: none on a loopback address, otherwise a random one).",
)
def run(
    request: RunRequest,
    log_format: str,
    output: str,
    ui: bool,
    ui_host: str,
    ui_port: int | None,
    ui_token: str | None,
) -> int:
    """Start each selected model that names a sink as a query. Print a line for every batch, or in a terminal a table
    of all queries.

    A query with the trigger available_now or once ends by itself. Others run until Ctrl-C, --for or --until-idle:
    each query then stops after its running batch, and the next run continues there. A run restarts a failed query
    as its `retries` define.
    """
    from sqlstream.app.run.run import run_models
    from sqlstream.cli.run_output import RunPrinter

    require_spark_system("run")
    request = replace(request, ui=UiRequest(ui_host, ui_port, ui_token) if ui else None)
    printer = RunPrinter("run", log_format, output, request.debug)
    return printer(lambda notify: run_models(request, notify))
