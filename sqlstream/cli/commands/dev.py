"""`sqlstream dev`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options, show_limit_option
from sqlstream.cli.output import echo_progress
from sqlstream.cli.terminal import terminal_width
from sqlstream.errors import UsageError

if TYPE_CHECKING:
    from sqlstream.app.show.dev import RefreshResult


@click.command("dev")
@project_options
@selection_options
@show_limit_option
def dev(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    limit: int,
) -> None:
    """Show the first rows of the selected models, or the errors, and again after each save.

    The rows are those of `sqlstream show`. Spark starts only once, so an answer takes about a second. Ctrl-C ends
    it.
    """
    from sqlstream.app.show.dev import watch_rows
    from sqlstream.app.show.show import ShowRequest

    require_spark_system("dev")
    del debug  # the traceback of an error is printed by main
    if selection == EVERYTHING:
        raise UsageError("dev needs a selection, such as --select my_model")
    request = ShowRequest(project, selection, limit=limit)
    watch_rows(request, echo_progress, _show)


def _show(refreshed: RefreshResult) -> None:
    from sqlstream.app.show.dev import refreshed_text

    now = datetime.now().astimezone()
    each = (refreshed.changed, refreshed.nodes, refreshed.findings, refreshed.seconds)
    click.echo(refreshed_text(now, *each, terminal_width()))
