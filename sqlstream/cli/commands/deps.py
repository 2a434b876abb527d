"""`sqlstream deps`."""

from __future__ import annotations

import sys

import click

from sqlstream.app.deps import NoProgress, fetch_connectors
from sqlstream.app.request import ProjectRequest
from sqlstream.cli.options import project_options
from sqlstream.report.downloads import DownloadBars, connector_line


@click.command("deps", short_help="Download the jars of connectors, and pin them.")
@project_options
@click.option(
    "--upgrade",
    is_flag=True,
    envvar="SQLSTREAM_UPGRADE",
    show_envvar=True,
    help="Replace the jars in connectors.lock by those that this version of sqlstream names.",
)
def deps(project: ProjectRequest, debug: bool, upgrade: bool) -> None:
    """Download the jars that the formats of the project need (Kafka, Avro, JDBC drivers and others) and those of the
    target's packages, and write their checksums to connectors.lock.

    Other commands download missing jars too. They use exactly the jars in connectors.lock, also without a network.
    """
    del debug  # the traceback of an error is printed by main
    progress = DownloadBars(sys.stderr) if sys.stderr.isatty() else NoProgress()
    fetched = fetch_connectors(project, progress, upgrade=upgrade)
    for each in fetched.connectors:
        numbers = (len(each.jars), each.downloaded, each.megabytes)
        click.echo(connector_line(each.name, *numbers, each.stands_in, fetched.spark))
    if not fetched.connectors:
        click.echo("The project needs no connectors.")
    if fetched.written is not None:
        click.echo(f"Wrote {fetched.written}; commit it with the project.")
