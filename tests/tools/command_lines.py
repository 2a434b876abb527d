"""Checks command lines in documents and examples."""

from __future__ import annotations

from collections.abc import Sequence

import click

from sqlstream.cli.main import cli, join_selectors


def check_command_line(words: Sequence[str]) -> None:
    """Parses the arguments of `sqlstream` without executing the command. Raises: click.UsageError."""
    context = click.Context(cli, info_name="sqlstream")
    command: click.Command = cli
    rest = join_selectors(list(words))
    while isinstance(command, click.Group):
        _, found, rest = command.resolve_command(context, rest)
        if found is None:
            raise click.UsageError(f"no command in {words}")
        command = found
    command.make_context(command.name, rest)
