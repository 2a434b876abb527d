"""`sqlstream status`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.status import read_status
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.output import DONE, FAILED, output_option, refusals_printed
from sqlstream.cli.terminal import terminal_width
from sqlstream.report.runs.status import status_json, status_text


@click.command("status", short_help="Show the state of queries, during and after a run.")
@project_options
@selection_options
@output_option("Output format: a table, or one JSON object.")
def status(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    output: str,
) -> int:
    """Show the state of each query in its newest run: rows, rates, watermark, state, and why it emits no rows or has
    failed.

    Works in another terminal during a run, and afterwards. Needs no Java. Exit code 1 if a query failed or was
    killed.
    """
    with refusals_printed(output, debug):
        found = read_status(project, selection)
    click.echo(status_json(found) if output == "json" else status_text(found, datetime.now(UTC), terminal_width()))
    return DONE if found.is_well else FAILED
