"""Every command has a page in docs/commands/ with a fixed form and all of its options."""

from __future__ import annotations

import re

import click
import pytest

from tests.tools.make_commands import FOLDER, SECTIONS, commands, fill_table, page_of, usage

COMMANDS: dict[str, click.Command] = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page_with_all_options(name: str) -> None:
    """Each page is up to date with all options; otherwise run `python -m tests.tools.make_commands`."""
    page = page_of(name).read_text(encoding="utf-8")

    assert page.startswith(f"# {name}\n\n```text\n{usage(name, COMMANDS[name])}\n```\n\n")
    assert tuple(re.findall(r"(?m)^## (.+)$", page)[:2]) == SECTIONS[:2]
    assert re.findall(r"(?m)^## (.+)$", page)[-1] == SECTIONS[-1]
    assert f"$ sqlstream {name}" in page.split("## Example\n")[1].split("## Options")[0]
    assert page == fill_table(page, COMMANDS[name])
    rows = [line for line in page.splitlines() if line.startswith("| `-")]
    options = [param for param in COMMANDS[name].params if isinstance(param, click.Option)]
    assert all(any(f"`{option.opts[-1]}`" in row for row in rows) for option in options)


def test_every_page_belongs_to_a_command() -> None:
    """Every page belongs to an existing command."""
    assert {path.name for path in FOLDER.glob("*.md")} == {page_of(name).name for name in COMMANDS}
