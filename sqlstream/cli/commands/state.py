"""`sqlstream state`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.cli.options import project_options, project_request
from sqlstream.cli.output import echo_progress, output_option, refusals_printed
from sqlstream.report.output_files import files_json, files_notes, files_text, repaired_text

version_option = click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="The version of the query, as in the folder v2 (default: the newest).",
)


@click.group("state", short_help="Look after a query's checkpoint and output.")
def state() -> None:
    """Look after the checkpoints and outputs of queries. Nothing is ever deleted."""


@state.command("files", short_help="List the committed files of an output.")
@project_options
@version_option
@output_option("One path or URI a line, or one JSON object.")
@click.argument("model", metavar="MODEL")
def files(
    project_dir: Path,
    target: str | None,
    variables: str | None,
    debug: bool,
    version: int | None,
    output: str,
    model: str,
) -> None:
    """List the files in the output of MODEL that its batches have committed, for readers other than Spark.

    A run that is killed leaves files of a batch that it did not finish. How many there are is said on stderr;
    `sqlstream state repair MODEL` puts them aside.
    """
    from sqlstream.app.state_files import state_files

    with refusals_printed(output, debug):
        found = state_files(project_request(project_dir, target, variables), model, version)
    if output == "json":
        click.echo(files_json(found))
        return
    if found.files.committed:
        click.echo(files_text(found))
    for note in files_notes(found):
        echo_progress(note)


@state.command("repair", short_help="Put aside what a killed run has left.")
@project_options
@version_option
@click.argument("model", metavar="MODEL")
def repair(
    project_dir: Path, target: str | None, variables: str | None, debug: bool, version: int | None, model: str
) -> None:
    """Put aside what a killed run, a power failure or a full disk has left of MODEL: entries of its checkpoint that
    were not written whole, the plan of a batch whose files are gone, and files in its output that no batch has
    committed.

    The next run does such a batch again, each row once. Stop the run of MODEL first.
    """
    del debug
    from sqlstream.app.state_repair import repair_checkpoint

    click.echo(repaired_text(repair_checkpoint(project_request(project_dir, target, variables), model, version)))
