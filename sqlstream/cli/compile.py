"""`sqlstream compile`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.compile import compile_models
from sqlstream.cli.options import project_options, project_request, selection_of, selection_options
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed
from sqlstream.report.compiled import compiled_json, compiled_text


@click.command("compile", short_help="Check the project and write the SQL that will run.")
@project_options
@selection_options
@output_option("Text for people, or one JSON object, which also holds warnings and errors.")
@click.option(
    "-q", "--quiet", is_flag=True, envvar="SQLSTREAM_QUIET", show_envvar=True, help="Print nothing but errors."
)
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
    """Check the whole project and write the SQL that will run to target/compiled/. Needs no Java.

    The SQL is written for the selected models, and also printed where that is a single one.
    """
    with refusals_printed(output, debug):
        compiled = compile_models(project_request(project_dir, target, variables), selection_of(select, exclude))
    if output == "json":
        click.echo(compiled_json(compiled.loaded.compiled, compiled.models, compiled.findings))
    elif not quiet:
        echo_warnings(compiled.findings)
        click.echo(compiled_text(compiled.loaded.compiled, compiled.models))
