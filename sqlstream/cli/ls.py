"""`sqlstream ls`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sqlstream.app.ls import list_nodes
from sqlstream.cli.options import project_options, project_request, selection_of, selection_options
from sqlstream.report.findings import findings_text


@click.command("ls")
@project_options
@selection_options
@click.option(
    "--resource-type",
    "types",
    multiple=True,
    type=click.Choice(["model", "seed", "source"]),
    help="Only nodes of this type.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Names, or one JSON object a line.")
def ls(
    project_dir: Path,
    target: str | None,
    variables: str | None,
    debug: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    types: tuple[str, ...],
    output: str,
) -> None:
    """List the models, seeds and sources that a selection names. Needs no Java."""
    del debug  # the traceback of an error is printed by main
    request = project_request(project_dir, target, variables)
    listing = list_nodes(request, selection_of(select, exclude, types))
    if listing.warnings:
        click.echo(findings_text(listing.warnings), err=True)
    lines = listing.names if output == "text" else [json.dumps(entry) for entry in listing.entries]
    click.echo("\n".join(lines))
