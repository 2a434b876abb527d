"""`sqlstream ui`."""

from __future__ import annotations

import click

from sqlstream.app.request import UI_HOST, UI_PORT, ProjectRequest, UiRequest
from sqlstream.cli.options import project_options, token_option


@click.command("ui")
@project_options
@click.option(
    "--host",
    default=UI_HOST,
    show_default=True,
    envvar="SQLSTREAM_UI_HOST",
    show_envvar=True,
    help="Address to listen on. Other machines can connect only if it is not a loopback address.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    envvar="SQLSTREAM_UI_PORT",
    show_envvar=True,
    help=f"Port to listen on (default: the first free one from {UI_PORT} on).",
)
@token_option
def ui(project: ProjectRequest, debug: bool, host: str, port: int | None, token: str | None) -> None:
    """Serve a page with the graph of the project, the state of each query, and its history, and print its URL.

    Reads the events of runs, ledgers, checkpoints and artifacts. Works during a run, afterwards, and for several runs
    and targets. Starts no query and no Java. Ctrl-C ends it.
    """
    from sqlstream.app.ui.serve import serve_page

    del debug  # the traceback of an error is printed by main
    serve_page(UiRequest(host, port, token), project, lambda url: click.echo(f"The page is at {url} (Ctrl-C ends it)"))
