"""`sqlstream explain`."""

from __future__ import annotations

import click

from sqlstream.app.explain import page_of
from sqlstream.cli.output import is_screen
from sqlstream.cli.terminal import terminal_width


@click.command("explain", short_help="Explain the code of a finding.")
@click.argument("code")
def explain(code: str) -> None:
    """Explain the code of a finding, such as unknown-ref, with an example and a fix."""
    page = page_of(code.strip("[]"))
    if is_screen():
        from sqlstream.report.markdown import markdown_text  # rich is loaded here and not before

        page = markdown_text(page, terminal_width())
    click.echo(page)
