"""`sqlstream compile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed
from sqlstream.errors import FindingsError, UsageError

if TYPE_CHECKING:
    from sqlstream.app.compile.compile import CompileOutput


@click.command("compile")
@project_options
@selection_options
@output_option("Text, or one JSON object with warnings and errors.")
@click.option(
    "--check",
    is_flag=True,
    envvar="SQLSTREAM_CHECK",
    show_envvar=True,
    help="Also let Spark analyze the selected models. Reads no data and starts no query. Needs Java.",
)
@click.option(
    "--explain",
    "explained",
    metavar="MODEL",
    help="Show when the query of this model emits its rows. Needs no Java.",
)
@click.option("-q", "--quiet", is_flag=True, envvar="SQLSTREAM_QUIET", show_envvar=True, help="Print only errors.")
def compile_(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    output: str,
    check: bool,
    explained: str | None,
    quiet: bool,
) -> None:
    """Check the whole project and write the compiled SQL to target/compiled/. Only --check needs Java; if there is
    Java, Spark's parser reads SQL that sqlstream cannot read.

    Writes the SQL of the selected models, and prints it if there is only one.
    """
    from sqlstream.app.compile.compile import compile_models

    if check:
        require_spark_system("compile --check")
    if explained is not None:
        if check or selection != EVERYTHING:
            raise UsageError("--explain takes a single model: do not combine it with --check or a selection")
        _explain(project, explained, output, debug)
        return
    with refusals_printed(output, debug):
        if check:
            from sqlstream.app.compile.check import check_models

            compiled, spark = check_models(project, selection)
        else:
            compiled, spark = compile_models(project, selection), None
    _show(compiled, spark, output, quiet)


def _show(compiled: CompileOutput, spark: str | None, output: str, quiet: bool) -> None:
    from sqlstream.report.compiled import compiled_json, compiled_text

    project, models, findings = compiled.loaded.compiled, compiled.models, compiled.findings
    if output == "json":
        click.echo(compiled_json(project, models, findings, spark))
    elif not quiet:
        echo_warnings(findings)
        click.echo(compiled_text(project, models, spark))


def _explain(request: ProjectRequest, name: str, output: str, debug: bool) -> None:
    from sqlstream.app.compile.emission_text import emission_json, emission_text, refused_text
    from sqlstream.app.compile.explain_model import explain_model

    with refusals_printed(output, debug):
        found = explain_model(request, name)
        if found.emission is None and output == "text":
            click.echo(refused_text(found.model), err=True)
        if found.emission is None:
            raise FindingsError(found.errors)
    show = emission_json if output == "json" else emission_text
    click.echo(show(found.model, found.emission, found.locate, found.reads, is_foreseen=found.is_foreseen))
