"""`sqlstream clean`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.cli.options import project_dir_option
from sqlstream.cli.output import output_option


@click.command("clean")
@project_dir_option
@output_option("One line, or one JSON object.")
def clean(project_dir: Path, output: str) -> None:
    """Remove target/, which compile and run create again. Outputs, checkpoints and logs remain."""
    from sqlstream.app.clean import clean_project
    from sqlstream.report.written import removed_json

    removed = clean_project(project_dir.resolve())
    if output == "json":
        click.echo(removed_json(removed))
        return
    click.echo(f"Removed {removed}" if removed else "There is no target/ folder to remove.")
