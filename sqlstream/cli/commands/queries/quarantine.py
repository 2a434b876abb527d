"""`sqlstream quarantine`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from sqlstream.app.request import SHOWN_ROWS, ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import limit_option, project_options
from sqlstream.cli.output import output_option, refusals_printed
from sqlstream.cli.terminal import terminal_width
from sqlstream.errors import UsageError


@click.group("quarantine")
def quarantine() -> None:
    """Show and release rows that violate a data test with `on_violation: quarantine`."""


@quarantine.command("show", short_help="Count and show quarantined rows.")
@project_options
@click.option("--where", metavar="CONDITION", help="Only rows that meet this condition in SQL.")
@click.option("--late", is_flag=True, help="Show the rows behind the watermark instead (late_rows: quarantine).")
@limit_option(SHOWN_ROWS, "Maximum number of rows to show.")
@output_option("Tables, or one JSON object.")
@click.argument("model", metavar="MODEL")
def show(
    project: ProjectRequest, debug: bool, where: str | None, late: bool, limit: int, output: str, model: str
) -> None:
    """Count the rows in the quarantine of MODEL by the test that they violate, and show the first ones. Also works
    during a run.
    """
    require_spark_system("quarantine show")
    from sqlstream.app.quarantine.quarantine import QuarantineRequest, quarantine_json, quarantine_text
    from sqlstream.app.quarantine.quarantine_query import show_quarantine

    with refusals_printed(output, debug):
        found = show_quarantine(QuarantineRequest(project, model, where, limit, late))
    click.echo(quarantine_json(found) if output == "json" else quarantine_text(found, terminal_width()))


@quarantine.command("release", short_help="Write quarantined rows to the sinks of their model.")
@project_options
@click.option("--where", metavar="CONDITION", help="Release the rows that meet this condition in SQL.")
@click.option("--all", "every", is_flag=True, help="Release all rows.")
@click.option(
    "--set",
    "changes",
    metavar="COLUMN=SQL",
    multiple=True,
    help="Give a column of the rows a new value, an expression in SQL, before they are tested.",
)
@click.option("--replace", "replaces", is_flag=True, help="Replace rows with the same unique_key, also later ones.")
@click.option("--dry-run", is_flag=True, help="Show how many rows would be released, and write nothing.")
@output_option("A few lines, or one JSON object.")
@click.argument("model", metavar="MODEL")
def release(
    project: ProjectRequest,
    debug: bool,
    where: str | None,
    every: bool,
    changes: Sequence[str],
    replaces: bool,
    dry_run: bool,
    output: str,
    model: str,
) -> None:
    """Write rows from the quarantine of MODEL to its sinks, as one more batch of its stream. Rows that still violate a
    test stay in quarantine.

    Each row is written once, also if the command is interrupted or repeated. Stop the run of MODEL first; its next run
    continues where it stopped. Without --where and --all, completes a release that was interrupted.
    """
    require_spark_system("quarantine release")
    if every and where is not None:
        raise UsageError("--all and --where cannot be combined")
    if changes and not every and where is None:
        raise UsageError("--set needs --where or --all")
    from sqlstream.app.quarantine.quarantine import ReleaseRequest, released_json, released_text
    from sqlstream.app.quarantine.quarantine_query import release_rows

    with refusals_printed(output, debug):
        found = release_rows(ReleaseRequest(project, model, where, every, _changes(changes), replaces, dry_run))
    click.echo(released_json(found) if output == "json" else released_text(found))


def _changes(given: Sequence[str]) -> dict[str, str]:
    """Returns the SQL of each column. Raises: UsageError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, sql = text.partition("=")
        name = name.strip()
        if not equals or not name or not sql.strip():
            raise UsageError(f"--set {text!r} is not of the form COLUMN=SQL, for example amount=0")
        if name.lower() in map(str.lower, found):
            raise UsageError(f"--set gives `{name}` two values")
        found[name] = sql.strip()
    return found
