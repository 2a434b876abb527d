"""`sqlstream path`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options
from sqlstream.cli.output import output_option, refusals_printed


@click.command("path")
@project_options
@click.option("--sink", metavar="NAME", help="Sink of the output, if the query writes to several sinks.")
@output_option("The path, URI or table, or one JSON object.")
@click.argument("model", metavar="MODEL")
def path(project: ProjectRequest, debug: bool, sink: str | None, output: str, model: str) -> None:
    """Print where readers find the rows of MODEL: the path, URI or table of the current version of its query."""
    require_spark_system("path")
    from sqlstream.app.versions.paths import chosen_outputs, current_outputs, outputs_json, path_text

    with refusals_printed(output, debug):
        outputs = chosen_outputs(current_outputs(project, model), model, sink)
        text = outputs_json(model, outputs) if output == "json" else path_text(outputs, model)
    click.echo(text)
