"""`sqlstream docs`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from sqlstream.app.request import ProjectRequest, Selection, UiRequest
from sqlstream.cli.options import project_dir_option, project_options, selection_options, token_option
from sqlstream.cli.output import echo_warnings, output_option, refusals_printed


@click.group("docs")
def docs() -> None:
    """Generate and serve the documentation site of the project. Needs no Java."""


@docs.command("generate", short_help="Write the documentation site.")
@project_options
@selection_options
@click.option(
    "--static", is_flag=True, help="Write one self-contained file, target/static_index.html, instead of target/docs/."
)
@click.option(
    "--compile/--no-compile",
    "compile_",
    default=True,
    help="Also write target/compiled/ and target/manifest.json, as `compile` does (default).",
)
@output_option("Two lines, or one JSON object.")
def generate(
    project: ProjectRequest, debug: bool, selection: Selection, static: bool, compile_: bool, output: str
) -> None:
    """Write a site that describes the project: sources, models, sinks, tests, lineage and SQL.

    Open it with a browser, with or without a server.
    """
    from sqlstream.app.docs.generate import generate_docs
    from sqlstream.numbers import bytes_text
    from sqlstream.report.written import site_json

    with refusals_printed(output, debug):
        made = generate_docs(project, selection, static=static, compile_=compile_)
    if output == "json":
        click.echo(site_json(made.page, made.nodes, made.size, made.warnings))
        return
    echo_warnings(made.warnings)
    here = Path.cwd()
    page = made.page.relative_to(here) if made.page.is_relative_to(here) else made.page
    click.echo(f"Wrote {page}: {made.nodes} nodes, {bytes_text(made.size)}")
    if not static:
        click.echo("Open it in a browser, or run `sqlstream docs serve`.")


@docs.command("serve", short_help="Serve the generated site.")
@project_dir_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 is any free port.",
)
@token_option
def serve(project_dir: Path, host: str, port: int, token: str | None) -> None:
    """Serve target/docs/ until Ctrl-C. Run `sqlstream docs generate` first."""
    from sqlstream.app.ui.serve import serve_docs

    def started(url: str) -> None:
        click.echo(f"Documentation: {url} (Ctrl-C to stop)")

    with suppress(KeyboardInterrupt):
        serve_docs(project_dir.resolve(), UiRequest(host, port, token), started)
