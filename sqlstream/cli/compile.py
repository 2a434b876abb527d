"""`sqlstream compile`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.compile import compile_models
from sqlstream.cli.options import project_options, project_request, selection_of, selection_options
from sqlstream.report.compiled import compiled_json, compiled_text


@click.command("compile")
@project_options
@selection_options
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="How to print the result.")
@click.option("-q", "--quiet", is_flag=True, envvar="SQLSTREAM_QUIET", help="Print errors only.")
def compile_(
    project_dir: Path,
    target: str | None,
    variables: str | None,
    debug: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    output: str,
    quiet: bool,
) -> None:
    """Compile the project to the SQL that will run, and say what is wrong. Needs no Java."""
    del debug  # the traceback of an error is printed by main
    compiled = compile_models(project_request(project_dir, target, variables), selection_of(select, exclude))
    if output == "json":
        click.echo(compiled_json(compiled.loaded.compiled, compiled.models, compiled.warnings))
    elif not quiet:
        click.echo(compiled_text(compiled.loaded.compiled, compiled.models, compiled.warnings))
