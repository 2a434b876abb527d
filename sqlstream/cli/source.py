"""`sqlstream source`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.source_schema import SAMPLED_FILES, source_schema
from sqlstream.cli.options import project_options, project_request
from sqlstream.cli.output import echo_progress
from sqlstream.report.source_columns import columns_yaml


@click.group("source", short_help="Look into sources.")
def source() -> None:
    """Look into the declared sources."""


@source.command("schema", short_help="Find the columns of a source in its data.")
@project_options
@click.argument("name", metavar="SOURCE.TABLE")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=SAMPLED_FILES,
    show_default=True,
    envvar="SQLSTREAM_SAMPLE",
    show_envvar=True,
    help="How many files to look into at most.",
)
def schema(project_dir: Path, target: str | None, variables: str | None, debug: bool, name: str, sample: int) -> None:
    """Have Spark find the columns of a source in its data, and print them as YAML to paste under the table.

    What is declared stays as it is; a comment says where the data disagree. No file is changed.
    """
    del debug  # the traceback of an error is printed by main
    request = project_request(project_dir, target, variables)
    click.echo(columns_yaml(source_schema(request, name, sample, echo_progress)))
