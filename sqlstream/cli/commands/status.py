"""`sqlstream status`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.output import DONE, FAILED, output_option, refusals_printed
from sqlstream.cli.terminal import terminal_width


@click.command("status")
@project_options
@selection_options
@click.option(
    "--check",
    is_flag=True,
    envvar="SQLSTREAM_CHECK",
    show_envvar=True,
    help="Also have Spark ask the brokers of Kafka sources, on the target's master. Needs Java. Where only Spark can "
    "read the checkpoints, as on HDFS, this is done without --check, on this machine.",
)
@output_option("Output format: tables, or one JSON object.")
def status(project: ProjectRequest, debug: bool, selection: Selection, check: bool, output: str) -> int:
    """Show the state of each query in its newest run: rows, rates, watermark, state, and why it emits no rows or has
    failed. Then show what its checkpoint says: the last batch, the watermark, and the offset and lag of each source.

    Works in another terminal during a run, afterwards, and on another machine with the same storage. Starts no query.
    Needs Java only with --check, or if only Spark can read the storage, as on HDFS. Exit code 1 if a query failed or
    was killed.
    """
    from sqlstream.app.status.status import read_status
    from sqlstream.app.status.status_text import status_json, status_text

    if check:
        require_spark_system("status --check")
    with refusals_printed(output, debug):
        found = read_status(project, selection, check=check)
    now = datetime.now(UTC)
    click.echo(status_json(found, now) if output == "json" else status_text(found, now, terminal_width()))
    return DONE if found.is_well else FAILED
