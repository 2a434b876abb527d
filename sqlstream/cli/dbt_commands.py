"""The commands that dbt has and sqlstream does not, and what to use instead."""

from __future__ import annotations

import click

from sqlstream.project.wording import alternatives, nearest

OF_DBT = {
    "clone": "a target with its own `storage` in project.yml has separate outputs and checkpoints",
    "freshness": "run `sqlstream source freshness`",
    "parse": "`sqlstream compile` parses and checks the project",
    "run-operation": "sqlstream does not run single macros: call it in a model",
    "seed": "seeds need no loading: `sqlstream run` reads them from seeds/",
    "snapshot": "sqlstream has no snapshots: read the changes as a stream and write them to a sink",
}


class HintingGroup(click.Group):
    """A command group that suggests an alternative for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command. Raises: click.UsageError for an unknown command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0] in OF_DBT:
                raise click.UsageError(f"No such command '{args[0]}': {OF_DBT[args[0]]}.", ctx) from error
            close = nearest(args[0], self.list_commands(ctx))
            if close:
                meant = f"did you mean {alternatives(close)}?"
                raise click.UsageError(f"No such command '{args[0]}': {meant}", ctx) from error
            raise
