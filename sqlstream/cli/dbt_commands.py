"""The commands that dbt has and sqlstream does not, and what to use instead."""

from __future__ import annotations

import re

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


_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)
"""What click says about arguments that a command does not take."""


class HintingGroup(click.Group):
    """A command group that suggests an alternative for an unknown command, and --select for names without an option."""

    def invoke(self, ctx: click.Context) -> object:
        """Runs a command. Raises: what it raises; click.UsageError for a wrong command line."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            extra, used = _EXTRA.fullmatch(error.message), error.ctx
            if extra is None or used is None or all("--select" not in each.opts for each in used.command.params):
                raise
            hint = f"select nodes with --select, for example `{used.command_path} --select {extra[1].split()[0]}`"
            raise click.UsageError(f"{error.message}: {hint}", used) from error

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
