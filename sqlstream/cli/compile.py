"""`sqlstream compile`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.check import check_models
from sqlstream.app.compile import compile_models
from sqlstream.cli.options import project_options, project_request, selection_of, selection_options
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed
from sqlstream.report.compiled import compiled_json, compiled_text


@click.command("compile", short_help="Check the project and write the SQL that will run.")
@project_options
@selection_options
@output_option("Text for people, or one JSON object, which also holds warnings and errors.")
@click.option(
    "--check",
    is_flag=True,
    envvar="SQLSTREAM_CHECK",
    show_envvar=True,
    help="Have Spark analyse the selected models too, with no data and nothing started. Needs Java.",
)
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
    selector: str | None,
    state: Path | None,
    output: str,
    check: bool,
    quiet: bool,
) -> None:
    """Check the whole project and write the SQL that will run to target/compiled/. Needs no Java, but for --check.

    The SQL is written for the selected models, and also printed where that is a single one.
    """
    selection = selection_of(select, exclude, selector, state)
    with refusals_printed(output, debug):
        request = project_request(project_dir, target, variables)
        if check:
            compiled, spark = check_models(request, selection, _silent if quiet else _echo_progress)
        else:
            compiled, spark = compile_models(request, selection), None
    if output == "json":
        click.echo(compiled_json(compiled.loaded.compiled, compiled.models, compiled.findings, spark))
    elif not quiet:
        echo_warnings(compiled.findings)
        click.echo(compiled_text(compiled.loaded.compiled, compiled.models, spark))


def _echo_progress(line: str) -> None:
    """What a check is doing is no part of its result."""
    click.echo(line, err=True)


def _silent(_line: str) -> None:
    """The progress of a check where nothing but errors is wanted."""
