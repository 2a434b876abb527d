"""`sqlstream ls`."""

from __future__ import annotations

import json

import click

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.cli.options import project_options, selection_options, shard_option, type_options
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed
from sqlstream.errors import UsageError


@click.command("ls")
@project_options
@selection_options
@shard_option
@type_options
@output_option("Names, or JSON as in dbt: one object per line.")
def ls(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    output: str,
) -> None:
    """List the models, seeds, sources and exposures of a selection, one per line; with --resource-type unit_test its
    unit tests, with --resource-type sink the sinks that its models write to. With --shard, list the queries that a
    run with the same options starts. Needs no Java.
    """
    from sqlstream.app.compile.ls import list_nodes
    from sqlstream.compiler.graph import MODEL

    if selection.shard is not None and not selection.has_type(MODEL):
        raise UsageError(
            "--shard (or SQLSTREAM_SHARD) lists queries, which are models; include the type model, or remove it"
        )
    with refusals_printed(output, debug):
        listing = list_nodes(project, selection)
    echo_warnings(listing.warnings)
    for line in map(json.dumps, listing.entries) if output == "json" else listing.names:
        click.echo(line)
