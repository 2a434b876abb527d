"""`sqlstream show`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.request import EVERYTHING
from sqlstream.app.show import Shown, ShowRequest, show_rows
from sqlstream.cli.options import limit_option, project_options, project_request, selection_of, selection_options
from sqlstream.cli.output import echo_progress, echo_warnings, refusals_printed
from sqlstream.cli.terminal import terminal_width
from sqlstream.errors import UsageError
from sqlstream.report.rows import rows_csv, rows_json, rows_text


@click.command("show", short_help="Show the first rows of models; nothing is started or written.")
@project_options
@selection_options
@click.option("--inline", metavar="SQL", help="Show the rows of this query instead; it may use ref() and source().")
@limit_option
@click.option(
    "--output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    help="A table for people, cut to the width of the terminal; one JSON object; or CSV, of a single selected node.",
)
@click.option(
    "-q", "--quiet", is_flag=True, envvar="SQLSTREAM_QUIET", show_envvar=True, help="Say nothing of what takes time."
)
def show(
    project_dir: Path,
    target: str | None,
    variables: str | None,
    debug: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    selector: str | None,
    state: Path | None,
    inline: str | None,
    limit: int,
    output: str,
    quiet: bool,
) -> None:
    """Show the first rows of the selected models, seeds and sources, parents first.

    Each is read as a batch over what its sources hold now. No query is started, and nothing is written. A source that
    can only stream is read for some seconds first.
    """
    selection = selection_of(select, exclude, selector, state)
    if (inline is None) == (selection == EVERYTHING):
        raise UsageError("show takes a selection, such as --select my_model, or a query with --inline, and not both")
    request = ShowRequest(project_request(project_dir, target, variables), selection, inline, limit)
    with refusals_printed(output, debug):
        shown = show_rows(request, _silent if quiet else echo_progress)
    echo_warnings(shown.warnings)
    click.echo(_text(shown, output))


def _text(shown: Shown, output: str) -> str:
    if output == "json":
        return rows_json(shown.nodes)
    if output == "csv":
        if len(shown.nodes) > 1:
            names = ", ".join(node.name for node in shown.nodes)
            raise UsageError(f"--output csv shows one table, and {names} are selected; select one, or take json")
        return "\n".join(map(rows_csv, shown.nodes))
    width = terminal_width()
    return "\n\n".join(rows_text(node, width) for node in shown.nodes)


def _silent(_line: str) -> None:
    """What takes its time, where nobody wants to know."""
