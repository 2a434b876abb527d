"""`sqlstream debug`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sqlstream.app.debug import debug as debug_project
from sqlstream.app.debug import session_version
from sqlstream.cli.options import project_options, project_request
from sqlstream.cli.output import DONE, FAILED, output_option
from sqlstream.report.checks import check_text, checks_json


@click.command("debug", short_help="Check Java, Spark, the target and write access.")
@project_options
@output_option("One line per check, or one JSON object.")
def debug(project_dir: Path, target: str | None, variables: str | None, debug: bool, output: str) -> int:
    """Check Python, Java, Spark, the project, its target, secrets, packages and write access.

    Each line says OK, or what is missing and how to fix it.
    """
    del debug  # the traceback of an error is printed by main
    checks = []
    for check in debug_project(project_request(project_dir, target, variables), session_version):
        checks.append(check)
        if output == "text":
            click.echo(check_text(check.name, check.ok, check.found, check.fix))
    if output == "json":
        click.echo(checks_json([asdict(check) for check in checks]))
    return DONE if all(check.ok for check in checks) else FAILED
