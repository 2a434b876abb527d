"""`sqlstream state`."""

from __future__ import annotations

import click

from sqlstream.app.request import SHOWN_ROWS, ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import limit_option, project_options
from sqlstream.cli.output import echo_progress, output_option, refusals_printed
from sqlstream.cli.terminal import terminal_width

version_option = click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="Version number of the query, such as 2 for the folder v2 (default: the current one).",
)


@click.group("state")
def state() -> None:
    """Inspect and repair checkpoints and outputs of queries. These commands delete nothing."""


@state.command("files", short_help="List the committed files of an output.")
@project_options
@version_option
@click.option("--sink", metavar="NAME", help="Sink of the output, if the query writes files to several sinks.")
@output_option("One path or URI per line, or one JSON object.")
@click.argument("model", metavar="MODEL")
def files(
    project: ProjectRequest,
    debug: bool,
    version: int | None,
    sink: str | None,
    output: str,
    model: str,
) -> None:
    """List the committed files in the output of MODEL, for readers other than Spark.

    A killed run leaves files of an unfinished batch. Their number goes to stderr; `sqlstream state repair MODEL`
    moves them away.
    """
    require_spark_system("state files")
    from sqlstream.app.state.files import state_files
    from sqlstream.app.state.state_text import files_json, files_notes, files_text

    with refusals_printed(output, debug):
        found = state_files(project, model, version, sink)
    if output == "json":
        click.echo(files_json(found))
        return
    if found.files.committed:
        click.echo(files_text(found))
    for note in files_notes(found):
        echo_progress(note)


@state.command("history", short_help="Show the versions of a query and their changes.")
@project_options
@output_option("Tables, or one JSON object.")
@click.argument("model", metavar="MODEL")
def history(project: ProjectRequest, debug: bool, output: str, model: str) -> None:
    """Show the stored versions of MODEL's query, the newest first: when each began, and how its query changed since."""
    require_spark_system("state history")
    from sqlstream.app.versions.publications import query_history
    from sqlstream.app.versions.versions_text import history_json, history_text

    with refusals_printed(output, debug):
        found = query_history(project, model)
    click.echo(history_json(found) if output == "json" else history_text(found))


@state.command("show", short_help="Show rows of a query's state.")
@project_options
@version_option
@click.option("--key", metavar="CONDITION", help="Show only rows whose key fulfills this condition in SQL.")
@limit_option(SHOWN_ROWS, "Maximum number of rows to show of each operator.")
@output_option("Tables, or one JSON object.")
@click.argument("model", metavar="MODEL")
def show(
    project: ProjectRequest, debug: bool, version: int | None, key: str | None, limit: int, output: str, model: str
) -> None:
    """Show the rows that the query of MODEL remembers after its last batch: keys and values of each operator that keeps
    state. Also works during a run.
    """
    require_spark_system("state show")
    from sqlstream.app.state.rows import show_state
    from sqlstream.app.state.state_text import state_json, state_text

    with refusals_printed(output, debug):
        shown = show_state(project, model, version=version, key=key, limit=limit)
    click.echo(state_json(shown) if output == "json" else state_text(shown, terminal_width()))


@state.command("size", short_help="Show the size of a query's state.")
@project_options
@version_option
@output_option("A table, or one JSON object.")
@click.argument("model", metavar="MODEL")
def size(project: ProjectRequest, debug: bool, version: int | None, output: str, model: str) -> None:
    """Show how many rows each operator of MODEL's query remembers, by partition, and the size of their files."""
    require_spark_system("state size")
    from sqlstream.app.state.rows import state_size
    from sqlstream.app.state.state_text import size_json, size_text

    with refusals_printed(output, debug):
        found = state_size(project, model, version=version)
    click.echo(size_json(found) if output == "json" else size_text(found))


@state.command("repartition", short_help="Change the number of partitions of a query's state.")
@project_options
@version_option
@output_option("Lines, or one JSON object.")
@click.argument("model", metavar="MODEL")
@click.argument("partitions", metavar="N", type=click.IntRange(min=1))
def repartition(
    project: ProjectRequest, debug: bool, version: int | None, output: str, model: str, partitions: int
) -> None:
    """Change the state of MODEL's query to N partitions. Its later runs use N as spark.sql.shuffle.partitions.

    Stop the run of MODEL first. Needs Spark 4.2 and the state store RocksDB. Deletes nothing.
    """
    require_spark_system("state repartition")
    from sqlstream.app.state.repartition import repartition_query
    from sqlstream.app.state.state_text import repartitioned_json, repartitioned_text

    with refusals_printed(output, debug):
        done = repartition_query(project, model, partitions, version=version)
    click.echo(repartitioned_json(done) if output == "json" else repartitioned_text(done))


@state.command("repair", short_help="Move away what a killed run left.")
@project_options
@version_option
@output_option("Lines, or one JSON object.")
@click.argument("model", metavar="MODEL")
def repair(project: ProjectRequest, debug: bool, version: int | None, output: str, model: str) -> None:
    """Move away what a killed run, a power failure or a full disk left of MODEL: torn entries of its checkpoint, the
    plan of a batch whose files are gone, and uncommitted files in its output.

    The next run repeats such a batch, with each row once. Stop the run of MODEL first.
    """
    require_spark_system("state repair")
    from sqlstream.app.state.files import repair_checkpoint
    from sqlstream.app.state.state_text import repaired_json, repaired_text

    with refusals_printed(output, debug):
        done = repair_checkpoint(project, model, version)
    click.echo(repaired_json(done) if output == "json" else repaired_text(done))
