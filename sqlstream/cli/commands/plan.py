"""`sqlstream plan`."""

from __future__ import annotations

import click

from sqlstream.app.request import PlanRequest, ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options, shard_option
from sqlstream.cli.output import DONE, FAILED, refusals_printed


@click.command("plan")
@project_options
@selection_options
@shard_option
@click.option(
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="Text, one JSON object, or Markdown for a pull request.",
)
@click.option(
    "--check",
    is_flag=True,
    envvar="SQLSTREAM_CHECK",
    show_envvar=True,
    help="Also have Spark compare the plans of changed queries that keep state, on the target's master. Reads no data. "
    "Needs Java. Where only Spark can read the ledgers, as on HDFS, this is done without --check, on this machine.",
)
@click.option(
    "--parallel",
    multiple=True,
    metavar="SELECTOR...",
    envvar="SQLSTREAM_PARALLEL",
    show_envvar=True,
    help="Queries to plan as new versions in parallel with the current ones; same syntax as --select.",
)
@click.pass_context
def plan(
    ctx: click.Context,
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    output: str,
    check: bool,
    parallel: tuple[str, ...],
) -> None:
    """Compare the project with the ledgers of its queries, and say for each query whether the next run starts it,
    resumes it or refuses it, and why. Writes nothing and starts no query.

    Exits with 1 if a run would refuse a query, or if it is undecided whether it would.
    """
    from sqlstream.app.plan.plan import plan_project
    from sqlstream.app.plan.plan_text import plan_json, plan_markdown, plan_text

    if check:
        require_spark_system("plan --check")
    with refusals_printed(output, debug):
        found = plan_project(PlanRequest(project, selection, check, parallel))
    show = {"json": plan_json, "markdown": plan_markdown, "text": plan_text}[output]
    click.echo(show(found))
    ctx.exit(FAILED if found.is_refused or found.is_undecided else DONE)
