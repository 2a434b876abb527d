"""`sqlstream run`."""

from __future__ import annotations

from dataclasses import replace

import click

from sqlstream.app.request import UI_HOST, UI_PORT, RunRequest, UiRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options, shard_option
from sqlstream.cli.run_options import bound_options, start_options


@click.command("run")
@project_options
@selection_options
@shard_option
@start_options
@bound_options
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
    standby: bool,
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
    request = replace(request, ui=UiRequest(ui_host, ui_port, ui_token) if ui else None, standby=standby)
    printer = RunPrinter("run", log_format, output, request.debug)
    return printer(lambda notify: run_models(request, notify))
