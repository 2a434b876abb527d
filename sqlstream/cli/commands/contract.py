"""`sqlstream contract`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.cli.dbt_commands import HintingGroup
from sqlstream.cli.options import project_options
from sqlstream.cli.output import echo_progress, output_option, refusals_printed


@click.group("contract", cls=HintingGroup)
def contract() -> None:
    """Export and import contracts in the Open Data Contract Standard."""


@contract.command("export", short_help="Print the contracts of models in the Open Data Contract Standard.")
@project_options
@click.argument("model", required=False)
@click.option("--output", type=click.Choice(["yaml", "json"]), default="yaml", help="YAML, or one JSON object.")
def export(project: ProjectRequest, debug: bool, model: str | None, output: str) -> None:
    """Print the contract of MODEL in the Open Data Contract Standard 3.1, or one with all models that have an enforced
    contract. Needs no Java.
    """
    from sqlstream.app.contract.export import contract_json, contract_yaml, export_contract

    with refusals_printed(output, debug):
        found = export_contract(project, model)
    click.echo(contract_json(found) if output == "json" else contract_yaml(found), nl=output == "json")


@contract.command("import", short_help="Write a contract as properties of models.")
@project_options
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option("Lines, or one JSON object.")
def import_(project: ProjectRequest, debug: bool, file: Path, output: str) -> None:
    """Write the tables of FILE, a contract in the Open Data Contract Standard 3, as properties of models with an
    enforced contract. Overwrites no file. Needs no Java.
    """
    from sqlstream.app.contract.importing import import_contract

    with refusals_printed(output, debug):
        found = import_contract(project, file)
    if output == "json":
        click.echo(json.dumps({"files": found.files, "notes": found.notes}))
        return
    for note in found.notes:
        echo_progress(note)
    for written in found.files:
        click.echo(f"Wrote {written}")
