"""`sqlstream init`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.cli.output import output_option


@click.command("init")
@click.argument("name")
@click.option(
    "--project-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder in which to create the project (default: current folder).",
)
@output_option("The next steps, or one JSON object.")
def init(name: str, project_dir: Path, output: str) -> None:
    """Create a small project in the new folder NAME. It compiles and runs without changes."""
    from sqlstream.app.init import init_project, next_steps_text
    from sqlstream.report.written import created_json

    made = init_project(name, project_dir.resolve())
    if output == "json":
        click.echo(created_json(made.root, made.files))
        return
    click.echo(next_steps_text(made.root, len(made.files), Path.cwd()))
