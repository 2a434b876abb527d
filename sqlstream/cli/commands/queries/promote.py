"""`sqlstream promote`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options
from sqlstream.cli.output import output_option, refusals_printed


@click.command("promote")
@project_options
@output_option("Lines, or one JSON object.")
@click.argument("model", metavar="MODEL")
def promote(project: ProjectRequest, debug: bool, output: str, model: str) -> None:
    """Make the version that `run --parallel` started the current version of MODEL: runs continue it. The version before
    stays as it is, and `sqlstream rollback MODEL` goes back to it. Running queries continue.
    """
    require_spark_system("promote")
    from sqlstream.app.versions.switch import promote
    from sqlstream.app.versions.versions_text import switched_json, switched_text

    with refusals_printed(output, debug):
        done = promote(project, model)
    click.echo(switched_json(done) if output == "json" else switched_text(done))
