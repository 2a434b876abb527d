"""`sqlstream init`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.init import init_project
from sqlstream.report.init import next_steps_text


@click.command("init", short_help="Create a project that runs without changes.")
@click.argument("name")
@click.option(
    "--project-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder in which to create the project (default: current folder).",
)
def init(name: str, project_dir: Path) -> None:
    """Create a small project in the new folder NAME. It compiles and runs without changes."""
    made = init_project(name, project_dir.resolve())
    click.echo(next_steps_text(made.root, len(made.files), Path.cwd()))
