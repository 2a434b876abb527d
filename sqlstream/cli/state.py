"""`sqlstream state`."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstream.cli.options import project_options, project_request
from sqlstream.report.numbers import plural


@click.group("state", short_help="Mend a query's checkpoint.")
def state() -> None:
    """Work on the checkpoints of queries. Nothing is ever deleted."""


@state.command("repair", short_help="Put aside what was torn in a checkpoint.")
@project_options
@click.argument("model", metavar="MODEL")
def repair(project_dir: Path, target: str | None, variables: str | None, debug: bool, model: str) -> None:
    """Put aside what in the checkpoint of MODEL was not written whole, or was planned over files that are gone, and was
    not committed: the next run does that batch again, each row once. Stop the run of MODEL first.
    """
    del debug
    from sqlstream.app.state_repair import repair_checkpoint

    done = repair_checkpoint(project_request(project_dir, target, variables), model)
    for path, moved in done.moved:
        click.echo(f"Moved {path}\n   to {moved}")
    if done.moved:
        click.echo(f"Put aside {plural(len(done.moved), 'entry', 'entries')}; `sqlstream run` goes on with `{model}`.")
    else:
        click.echo(f"Nothing is torn in the checkpoint of `{model}`.")
