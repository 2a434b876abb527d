"""`sqlstream explain`."""

from __future__ import annotations

import click

from sqlstream.cli.output import is_screen, output_option
from sqlstream.cli.terminal import terminal_width
from sqlstream.codes import CODES


@click.command("explain")
@output_option("A page of Markdown, or one JSON object.")
@click.argument("code")
def explain(code: str, output: str) -> None:
    """Explain the code of a finding, such as unknown-ref, with an example and a fix."""
    from sqlstream.app.explain import page_of
    from sqlstream.report.written import explanation_json

    code = code.strip("[]")
    page = page_of(code)
    if output == "json":
        click.echo(explanation_json(code, CODES[code], page))
        return
    if is_screen():
        from sqlstream.report.markdown import markdown_text  # rich is loaded here and not before

        page = markdown_text(page, terminal_width())
    click.echo(page)
