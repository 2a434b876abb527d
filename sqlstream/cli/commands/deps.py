"""`sqlstream deps`."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.cli.options import project_options
from sqlstream.cli.output import output_option, refusals_printed


@click.command("deps")
@project_options
@click.option(
    "--upgrade",
    is_flag=True,
    envvar="SQLSTREAM_UPGRADE",
    show_envvar=True,
    help="Replace the jars in connectors.lock by those that this version of sqlstream names.",
)
@output_option("A line for each connector, or one JSON object.")
def deps(project: ProjectRequest, debug: bool, upgrade: bool, output: str) -> None:
    """Download the jars that the formats of the project need (Kafka, Avro, JDBC drivers and others) and those of the
    target's packages, and write their checksums to connectors.lock.

    Other commands download missing jars too. They use exactly the jars in connectors.lock, also without a network.
    """
    from sqlstream.app.deps import NoProgress, fetch_connectors
    from sqlstream.report.written import DownloadBars, connector_line, jars_json

    progress = DownloadBars(sys.stderr) if sys.stderr.isatty() else NoProgress()
    with refusals_printed(output, debug):
        fetched = fetch_connectors(project, progress, upgrade=upgrade)
    if output == "json":
        click.echo(jars_json(fetched.spark, map(asdict, fetched.connectors), fetched.written))
        return
    for each in fetched.connectors:
        numbers = (len(each.jars), each.downloaded, each.megabytes)
        click.echo(connector_line(each.name, *numbers, each.stands_in, fetched.spark))
    if not fetched.connectors:
        click.echo("The project needs no connectors.")
    if fetched.written is not None:
        click.echo(f"Wrote {fetched.written}; commit it with the project.")
