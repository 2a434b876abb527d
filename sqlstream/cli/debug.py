"""`sqlstream debug`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.app.debug import debug as debug_project
from sqlstream.app.debug import session_version
from sqlstream.cli.options import project_options, project_request
from sqlstream.report.checks import check_text


@click.command("debug", short_help="Check Java, Spark, the target and write access.")
@project_options
def debug(project_dir: Path, target: str | None, variables: str | None, debug: bool) -> int:
    """Check Java, Spark, the target and write access. Each line says ok, or what is missing and how to mend it."""
    del debug  # the traceback of an error is printed by main
    well = True
    for check in debug_project(project_request(project_dir, target, variables), session_version):
        click.echo(check_text(check.name, check.ok, check.found, check.fix))
        well = well and check.ok
    return 0 if well else 1
