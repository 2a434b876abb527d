"""`sqlstream init`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.init import init_project
from sqlstream.report.init import next_steps_text


@click.command("init", short_help="Make a new project that runs as it is.")
@click.argument("name")
@click.option(
    "--project-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="The folder to make the project's folder in. The current folder if not given.",
)
def init(name: str, project_dir: Path) -> None:
    """Make a small project in the new folder NAME. It compiles and runs as it is, for you to change."""
    made = init_project(name, project_dir.resolve())
    click.echo(next_steps_text(made.root, len(made.files), Path.cwd()))
