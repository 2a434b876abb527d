"""docs/commands.md names every option of every command, and its environment variable."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from sqlstream.cli.main import COMMANDS as NAMES
from sqlstream.cli.main import cli

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
COMMANDS = [command for name in NAMES if (command := cli.get_command(click.Context(cli), name)) is not None]
OPTIONS = {
    option.opts[-1]: option for command in COMMANDS for option in command.params if isinstance(option, click.Option)
}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_is_documented(name: str) -> None:
    """All of its spellings and its environment variable stand in one row of a table."""
    option = OPTIONS[name]
    words = [*option.opts, *([option.envvar] if isinstance(option.envvar, str) else [])]

    assert any(all(f"`{word}" in line for word in words) for line in PAGE.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_every_command_is_documented(command: click.Command) -> None:
    """With a row of the first table."""
    assert f"| `{command.name}" in PAGE
