"""`sqlstream source`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from sqlstream.app.request import SAMPLED_FILES, ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.dbt_commands import HintingGroup
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.output import FAILED, echo_progress, echo_warnings, output_option, refusals_printed


@click.group("source", cls=HintingGroup)
def source() -> None:
    """Inspect the declared sources."""


@source.command("schema", short_help="Infer the columns of a source from its data.")
@project_options
@click.argument("name", metavar="SOURCE.TABLE")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=SAMPLED_FILES,
    show_default=True,
    envvar="SQLSTREAM_SAMPLE",
    show_envvar=True,
    help="Maximum number of files to read.",
)
@click.option(
    "--diff",
    is_flag=True,
    envvar="SQLSTREAM_DIFF",
    show_envvar=True,
    help="Print only how the data differs from the declared columns; exit code 1 if it does.",
)
@output_option("Output format: YAML to paste, or one JSON object.")
@click.pass_context
def schema(
    context: click.Context, project: ProjectRequest, debug: bool, name: str, sample: int, diff: bool, output: str
) -> None:
    """Infer the columns of a source from its data with Spark, and print them as YAML to paste under the table.

    Declared columns remain; comments show how many files were read and where the data differ. Changes no files, except
    that it writes the schemas of a schema registry to registry/.
    """
    from sqlstream.app.source.source_schema import (
        columns_json,
        columns_yaml,
        differences_text,
        require_comparison,
        source_schema,
    )

    require_spark_system("source schema")
    with refusals_printed(output, debug):
        found = source_schema(project, name, sample, echo_progress)
        if diff:
            require_comparison(found)
    if output == "json":
        click.echo(columns_json(found))
    else:
        click.echo(differences_text(found) if diff else columns_yaml(found))
    context.exit(FAILED if diff and found.differences else 0)


@source.command("freshness", short_help="Check how old the newest data of sources is.")
@project_options
@selection_options
@click.option(
    "-o",
    "--output-path",
    metavar="PATH",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="SQLSTREAM_OUTPUT_PATH",
    show_envvar=True,
    help="File for the results in dbt's format (default: target/sources.json).",
)
@output_option("Output format: a line for each source, or the content of sources.json.")
@click.option("-q", "--quiet", is_flag=True, envvar="SQLSTREAM_QUIET", show_envvar=True, help="Hide progress messages.")
@click.pass_context
def freshness(
    context: click.Context,
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    output_path: Path | None,
    output: str,
    quiet: bool,  # noqa: ARG001 - `project` has it
) -> None:
    """Compare the age of the newest data of each source with its `freshness`, and write target/sources.json.

    Checks the selected sources that have `freshness`. Starts Java only if the time is in a column, in Kafka or in
    remote files.
    """
    from sqlstream.app.source.freshness import FreshnessObserver, FreshnessRequest, check_freshness
    from sqlstream.app.source.freshness_result import FreshnessReporter, sources_artifact
    from sqlstream.report.rows import json_text

    reporter = FreshnessReporter(click.echo)
    is_text = output == "text"
    observer = FreshnessObserver(reporter.started, reporter.ended, echo_warnings) if is_text else FreshnessObserver()
    with refusals_printed(output, debug):
        results = check_freshness(FreshnessRequest(project, selection, output_path), observer)
    if is_text:
        reporter.finish()
    else:
        click.echo(json_text(sources_artifact(results, datetime.now(UTC)), indent=2))
    context.exit(0 if results.succeeded else FAILED)
