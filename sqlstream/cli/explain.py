"""`sqlstream explain`."""

from __future__ import annotations

import click

from sqlstream.app.explain import page_of


@click.command("explain", short_help="Explain the code of a finding.")
@click.argument("code")
def explain(code: str) -> None:
    """Print the page of a finding's code, such as unknown-ref: what it means, an example, and what to do."""
    click.echo(page_of(code.strip("[]")))
