"""`sqlstream clean`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.clean import clean_project
from sqlstream.cli.options import project_dir_option


@click.command("clean", short_help="Remove target/, but not outputs and checkpoints.")
@project_dir_option
def clean(project_dir: Path) -> None:
    """Remove target/, which compile and run create again. Outputs, checkpoints and logs remain."""
    removed = clean_project(project_dir.resolve())
    click.echo(f"Removed {removed}" if removed else "There is no target/ folder to remove.")
