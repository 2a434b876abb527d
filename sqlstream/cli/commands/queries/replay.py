"""`sqlstream replay`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import limit_option, project_options
from sqlstream.cli.output import DONE, FAILED, output_option, refusals_printed
from sqlstream.cli.terminal import terminal_width
from sqlstream.report.findings import findings_text

SHOWN_ROWS = 20
"""The default number of rows to show of each source, view and model."""


@click.command("replay")
@project_options
@click.option(
    "--batch",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of the batch (default: the last one, which may have failed or still be running).",
)
@click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="Version number of the query, such as 2 for the folder v2 (default: the current one).",
)
@limit_option(SHOWN_ROWS, "Maximum number of rows to show of each source, view and model.")
@click.option(
    "--to-test",
    "test",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[NAME]",
    help="Also write the batch as a unit test in tests/models/ (default name: batch_N).",
)
@output_option("Tables, or one JSON object.")
@click.argument("model", metavar="MODEL")
def replay(
    project: ProjectRequest,
    debug: bool,
    batch: int | None,
    version: int | None,
    limit: int,
    test: str | None,
    output: str,
    model: str,
) -> int:
    """Run a past batch of MODEL's query again, and show its rows on their way from the sources through the views.

    Reads exactly what the batch has read, with the SQL, the settings and the state with which it ran. Writes nothing
    to the checkpoint or the sink. Also works during a run.
    """
    require_spark_system("replay")
    from sqlstream.app.replay.replay_batch import ReplayRequest, replay_batch
    from sqlstream.app.replay.replayed_batch import replayed_json, replayed_text

    with refusals_printed(output, debug):
        shown = replay_batch(ReplayRequest(project, model, batch, version, limit, test))
    click.echo(replayed_json(shown) if output == "json" else replayed_text(shown, terminal_width()))
    if output != "json" and shown.failures:
        click.echo(findings_text(shown.failures), err=True)
    passes = shown.test is None or shown.test[2]
    return DONE if passes and not shown.failures else FAILED
