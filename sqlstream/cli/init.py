"""`sqlstream init`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.init import init_project
from sqlstream.report.init import next_steps_text


@click.command("init")
@click.argument("name")
@click.option(
    "--project-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder to make the project's folder in. [default: the current folder]",
)
def init(name: str, project_dir: Path) -> None:
    """Make a project in the new folder NAME that compiles and runs as it is."""
    made = init_project(name, project_dir.resolve())
    click.echo(next_steps_text(made.root, len(made.files), Path.cwd()))
