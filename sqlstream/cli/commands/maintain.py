"""`sqlstream maintain`."""

from __future__ import annotations

import click

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.duration import Duration
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.output import output_option, refusals_printed


@click.command("maintain")
@project_options
@selection_options
@click.option(
    "--merge-files",
    is_flag=True,
    help="Also merge small files of file sinks. Streams outside the project that read these files read them again.",
)
@click.option(
    "--retain",
    "retain_seconds",
    type=Duration(),
    help="Keep what readers may still use for this time, such as 12h or 7d (default: Delta Lake 7 days or the table's "
    "own setting, Iceberg 5 days, files 7 days).",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@output_option("A few lines for each output, or one JSON object.")
def maintain(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    merge_files: bool,
    retain_seconds: float | None,
    dry_run: bool,
    output: str,
) -> None:
    """Compact the outputs of the selected queries: OPTIMIZE and VACUUM of Delta Lake, rewrite and expire of Iceberg,
    and with --merge-files the small files of file sinks. Readers see each row once at every moment.

    Stop the runs of these queries first. Outputs that cannot be compacted exactly are left alone, with the reason.
    """
    require_spark_system("maintain")
    from sqlstream.app.maintain.maintain import MaintainRequest, maintained_json, maintained_text
    from sqlstream.app.maintain.maintain_sinks import maintain_sinks

    with refusals_printed(output, debug):
        found = maintain_sinks(MaintainRequest(project, selection, merge_files, retain_seconds, dry_run))
    click.echo(maintained_json(found) if output == "json" else maintained_text(found))
