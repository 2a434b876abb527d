"""`sqlstream clean`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.clean import clean_project


@click.command("clean")
@click.option(
    "--project-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    envvar="SQLSTREAM_PROJECT_DIR",
    help="The project's folder, or one below it. [default: the current folder]",
)
def clean(project_dir: Path) -> None:
    """Remove target/, which every command makes anew. Checkpoints, outputs and logs stay."""
    removed = clean_project(project_dir.resolve())
    click.echo(f"Removed {removed}" if removed else "There is no target/ folder to remove.")
