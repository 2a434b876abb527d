"""`sqlstream source`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.source_schema import SAMPLED_FILES, source_schema
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.dbt_commands import HintingGroup
from sqlstream.cli.options import project_options
from sqlstream.cli.output import echo_progress, output_option, refusals_printed
from sqlstream.report.source_columns import columns_json, columns_yaml


@click.group("source", cls=HintingGroup, short_help="Inspect sources.")
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
@output_option("Output format: YAML to paste, or one JSON object.")
def schema(project: ProjectRequest, debug: bool, name: str, sample: int, output: str) -> None:
    """Infer the columns of a source from its data with Spark, and print them as YAML to paste under the table.

    Declared columns remain; comments show how many files were read and where the data differ. Changes no files, except
    that it writes the schemas of a schema registry to registry/.
    """
    require_spark_system("source schema")
    with refusals_printed(output, debug):
        found = source_schema(project, name, sample, echo_progress)
    click.echo(columns_json(found) if output == "json" else columns_yaml(found))
