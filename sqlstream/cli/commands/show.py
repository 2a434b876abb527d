"""`sqlstream show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options, show_limit_option
from sqlstream.cli.output import echo_warnings, refusals_printed
from sqlstream.cli.terminal import terminal_width
from sqlstream.errors import UsageError

if TYPE_CHECKING:
    from sqlstream.app.show.show import ShowResult


@click.command("show")
@project_options
@selection_options
@click.option("--inline", metavar="SQL", help="Query to show instead; can use ref() and source().")
@show_limit_option
@click.option(
    "--output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    help="A table that fits the terminal, one JSON object, or CSV for a single node.",
)
@click.option("-q", "--quiet", is_flag=True, envvar="SQLSTREAM_QUIET", show_envvar=True, help="Hide progress messages.")
def show(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    inline: str | None,
    limit: int,
    output: str,
    quiet: bool,
) -> None:
    """Show the first rows of the selected models, seeds and sources, upstream nodes first.

    Reads each as a batch over the current data of its sources. Starts no query and writes nothing. For sources
    that can only stream, reads a sample for a few seconds first. If the query of a model is running and writes to
    a memory sink, shows the current table of that query.
    """
    from sqlstream.app.show.show import ShowRequest, show_rows

    require_spark_system("show")
    del quiet  # `project` holds it
    if inline is None and selection == EVERYTHING:
        raise UsageError("show needs a selection such as --select my_model, or a query with --inline")
    if inline is not None and selection != EVERYTHING:
        raise UsageError("--inline and a selection cannot be combined; use only one of them")
    request = ShowRequest(project, selection, inline, limit)
    with refusals_printed(output, debug):
        shown = show_rows(request)
    echo_warnings(shown.warnings)
    click.echo(_text(shown, output))


def _text(shown: ShowResult, output: str) -> str:
    from sqlstream.report.rows import rows_csv, rows_json, rows_text

    if output == "json":
        return rows_json(shown.nodes)
    if output == "csv":
        if len(shown.nodes) > 1:
            names = ", ".join(node.name for node in shown.nodes)
            raise UsageError(f"--output csv shows a single table, but {names} are selected; select one, or use json")
        return "\n".join(map(rows_csv, shown.nodes))
    width = terminal_width()
    return "\n\n".join(rows_text(node, width) for node in shown.nodes)
