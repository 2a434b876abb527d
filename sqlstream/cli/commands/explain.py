"""`sqlstream explain`."""

from __future__ import annotations

import click

from sqlstream.app.explain import page_of
from sqlstream.cli.output import is_screen, output_option
from sqlstream.cli.terminal import terminal_width
from sqlstream.codes import CODES
from sqlstream.report.written import explanation_json


@click.command("explain", short_help="Explain the code of a finding.")
@output_option("A page of Markdown, or one JSON object.")
@click.argument("code")
def explain(code: str, output: str) -> None:
    """Explain the code of a finding, such as unknown-ref, with an example and a fix."""
    code = code.strip("[]")
    page = page_of(code)
    if output == "json":
        click.echo(explanation_json(code, CODES[code], page))
        return
    if is_screen():
        from sqlstream.report.markdown import markdown_text  # rich is loaded here and not before

        page = markdown_text(page, terminal_width())
    click.echo(page)
