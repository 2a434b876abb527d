"""`sqlstream rollback`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options
from sqlstream.cli.output import output_option, refusals_printed


@click.command("rollback")
@project_options
@output_option("Lines, or one JSON object.")
@click.argument("model", metavar="MODEL")
def rollback(project: ProjectRequest, debug: bool, output: str, model: str) -> None:
    """Make the version that was current before the last promotion or full refresh the current version of MODEL again.
    The other one stays as it is, and `sqlstream promote MODEL` makes it current again. Running queries continue.
    """
    require_spark_system("rollback")
    from sqlstream.app.versions.switch import roll_back
    from sqlstream.app.versions.versions_text import switched_json, switched_text

    with refusals_printed(output, debug):
        done = roll_back(project, model)
    click.echo(switched_json(done) if output == "json" else switched_text(done))
