"""`sqlstream debug`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options
from sqlstream.cli.output import DONE, FAILED, output_option
from sqlstream.errors import UsageError


@click.command("debug")
@project_options
@output_option("One line per check, or one JSON object.")
@click.option(
    "--class-archive",
    type=click.Choice(["build", "remove"]),
    help="Build or remove the archive of Spark's classes, and check nothing.",
)
@click.option("--alerts", is_flag=True, help="Send a test message through each channel of alerts, and check nothing.")
def debug(
    project: ProjectRequest,
    debug: bool,
    output: str,
    class_archive: str | None,
    alerts: bool,
) -> int:
    """Check Python, Java, Spark, the project, its target, secrets, packages, write access, and the servers it names.

    Each line shows OK, or what is missing and how to fix it.
    """
    from sqlstream.app.debug import check_text, checks_json, try_alerts
    from sqlstream.app.debug import debug as debug_project

    require_spark_system("debug")
    del debug  # the traceback of an error is printed by main
    if alerts and class_archive is not None:
        raise UsageError("--alerts and --class-archive are different tasks; use one of them")
    if class_archive is not None:
        if output == "json":
            raise UsageError("--class-archive prints text only; remove --output json")
        return _build_archive() if class_archive == "build" else _remove_archives()
    checks = []
    for check in try_alerts(project) if alerts else debug_project(project):
        checks.append(check)
        if output == "text":
            click.echo(check_text(check.name, check.ok, check.found, check.fix))
    if output == "json":
        click.echo(checks_json([asdict(check) for check in checks]))
    return DONE if all(check.ok for check in checks) else FAILED


def _build_archive() -> int:
    from sqlstream.spark.jvm.class_archive import build  # pyspark is loaded here and not before

    with _file_problems():
        built = build(os.environ)
    if built.seconds:
        click.echo(f"Built {built.path} ({built.megabytes} MB) in {built.seconds:.1f} s")
    else:
        click.echo(f"{built.path} ({built.megabytes} MB) is up to date")
    return DONE


def _remove_archives() -> int:
    from sqlstream.spark.jvm.class_archive import remove

    with _file_problems():
        removed = remove(os.environ)
    for path, megabytes in removed:
        click.echo(f"Removed {path} ({megabytes} MB)")
    if not removed:
        click.echo("There is no class archive")
    return DONE


@contextmanager
def _file_problems() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write to {error.filename}: {(error.strerror or str(error)).lower()}") from error
