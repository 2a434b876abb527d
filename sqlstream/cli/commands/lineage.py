"""`sqlstream lineage`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.cli.options import project_options
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed


@click.command("lineage")
@project_options
@click.argument("name", metavar="MODEL[.COLUMN]")
@output_option("A table, or one JSON object.")
def lineage(project: ProjectRequest, debug: bool, name: str, output: str) -> None:
    """Show the columns of a model: their types, watermarks, and the columns that they come from. Needs no Java."""
    from sqlstream.app.compile.lineage import lineage_json, lineage_text, trace

    with refusals_printed(output, debug):
        found = trace(project, name)
    echo_warnings(found.warnings)
    click.echo(lineage_json(found.model, found.columns) if output == "json" else lineage_text(found.columns))
