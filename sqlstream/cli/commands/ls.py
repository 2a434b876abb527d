"""`sqlstream ls`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from sqlstream.app.ls import list_nodes
from sqlstream.cli.options import project_options, project_request, selection_of, selection_options, type_options
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed


@click.command("ls", short_help="List models, seeds, sources and unit tests.")
@project_options
@selection_options
@type_options
@output_option("Names, or JSON as in dbt: one object per line.")
def ls(
    project_dir: Path,
    target: str | None,
    variables: str | None,
    debug: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    selector: str | None,
    state: Path | None,
    types: tuple[str, ...],
    excluded_types: tuple[str, ...],
    output: str,
) -> None:
    """List the models, seeds and sources of a selection, one per line; with --resource-type unit_test its unit tests.
    Needs no Java.
    """
    selection = selection_of(select, exclude, selector, state)
    selection = replace(selection, resource_types=types, excluded_types=excluded_types)
    with refusals_printed(output, debug):
        listing = list_nodes(project_request(project_dir, target, variables), selection)
    echo_warnings(listing.warnings)
    for line in map(json.dumps, listing.entries) if output == "json" else listing.names:
        click.echo(line)
