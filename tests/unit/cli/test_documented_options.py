"""docs/commands.md links to every command and lists each option that several commands share."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import click
import pytest

from tests.tools.make_commands import commands

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
COMMANDS: dict[str, click.Command] = dict(commands())
ROWS = [line for line in PAGE.splitlines() if line.startswith("|")]
USES = Counter(
    option.opts[-1]
    for command in COMMANDS.values()
    for option in command.params
    if isinstance(option, click.Option) and isinstance(option.envvar, str)
)
SHARED = sorted(name for name, uses in USES.items() if uses >= 5)
"""Options of the project and of the selection. Options of only two or three commands are on those commands' pages."""


@pytest.mark.parametrize("name", SHARED)
def test_every_shared_option_has_one_row(name: str) -> None:
    """Each shared option has one row with all of its spellings and its environment variable."""
    options = [it for command in COMMANDS.values() for it in command.params if it.opts[-1] == name]
    option = next(it for it in options if it.envvar)  # `init` does not take its folder from the environment
    words = [*option.opts, *option.secondary_opts, str(option.envvar)]

    assert len([row for row in ROWS if all(re.search(f"`{word}[` ]", row) for word in words)]) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_linked_to_its_page(name: str) -> None:
    """The first table links to the page of every command."""
    assert len([row for row in ROWS if row.startswith(f"| [`{name}`](commands/{name.replace(' ', '-')}.md)")]) == 1
