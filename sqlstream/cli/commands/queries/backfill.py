"""`sqlstream backfill`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sqlstream.app.request import ProjectRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options
from sqlstream.cli.output import output_option, refusals_printed
from sqlstream.errors import UsageError


class _Moment(click.ParamType[datetime]):
    """A date, or a date and a time, in ISO 8601; UTC unless it has an offset."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Returns the time. Raises: click.BadParameter."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2024-01-31 or 2024-01-31T12:00:00+01:00.", param, ctx)
        try:
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except OverflowError:
            self.fail(f"{value!r} is before the year 1 or after the year 9999 in UTC.", param, ctx)


@click.command("backfill")
@project_options
@click.option("--from", "since", type=_Moment(), metavar="TIME", help="First time to include, for example 2024-01-31.")
@click.option("--to", "until", type=_Moment(), metavar="TIME", help="First time to exclude.")
@click.option("--full-range", is_flag=True, help="Write all history, without --from and --to.")
@click.option("--replace", is_flag=True, help="Recompute the rows of the range, and replace those in the sink.")
@click.option("--by", metavar="COLUMN", help="With --replace: column with the time of a row (default: the only one).")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@output_option("A few lines, or one JSON object.")
@click.argument("model", metavar="MODEL")
def backfill(
    project: ProjectRequest,
    debug: bool,
    since: datetime | None,
    until: datetime | None,
    full_range: bool,
    replace: bool,
    by: str | None,
    dry_run: bool,
    output: str,
    model: str,
) -> None:
    """Write the history of MODEL's sources that its stream has not read and will not read into its sink: records before
    its first Kafka offsets, and files that are too old for it.

    Each row is written once, also if the command is interrupted or repeated. Stop the run of MODEL first; its next run
    continues where it stopped. Without a range, completes a backfill that was interrupted.

    With --replace, the rows of a range are computed again from everything that the stream has read, and replace those
    that the sink has.
    """
    require_spark_system("backfill")
    if full_range and (since is not None or until is not None):
        raise UsageError("--full-range and --from or --to cannot be combined")
    if since is not None and until is not None and since >= until:
        raise UsageError("--from must be before --to")
    if replace and (since is None or until is None):
        raise UsageError("--replace needs --from and --to")
    if by is not None and not replace:
        raise UsageError("--by needs --replace")
    from sqlstream.app.backfill.backfill import BackfillRequest, backfilled_json, backfilled_text
    from sqlstream.app.backfill.backfill_query import backfill_query

    with refusals_printed(output, debug):
        has_range = full_range or since is not None or until is not None
        request = BackfillRequest(
            project, model, since, until, dry_run, only_complete=not has_range, replaces=replace, by=by
        )
        found = backfill_query(request)
    click.echo(backfilled_json(found) if output == "json" else backfilled_text(found))
