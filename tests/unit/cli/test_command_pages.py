"""Every command has a page in docs/commands/ with a fixed form and all of its options."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[3]
TOOL = runpy.run_path(str(ROOT / "tests" / "tools" / "make_commands.py"))
COMMANDS: dict[str, click.Command] = dict(TOOL["commands"]())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page_with_all_options(name: str) -> None:
    """Each page is up to date with all options; otherwise run tests/tools/make_commands.py."""
    page = TOOL["page_of"](name).read_text(encoding="utf-8")

    assert page.startswith(f"# {name}\n\n```text\n{TOOL['usage'](name, COMMANDS[name])}\n```\n\n")
    assert tuple(re.findall(r"(?m)^## (.+)$", page)[:2]) == TOOL["SECTIONS"][:2]
    assert re.findall(r"(?m)^## (.+)$", page)[-1] == TOOL["SECTIONS"][-1]
    assert f"$ sqlstream {name}" in page.split("## Example\n")[1].split("## Options")[0]
    assert page == TOOL["fill_table"](page, COMMANDS[name])
    rows = [line for line in page.splitlines() if line.startswith("| `-")]
    options = [param for param in COMMANDS[name].params if isinstance(param, click.Option)]
    assert all(any(f"`{option.opts[-1]}`" in row for row in rows) for option in options)


def test_every_page_belongs_to_a_command() -> None:
    """Every page belongs to an existing command."""
    assert {path.name for path in TOOL["FOLDER"].glob("*.md")} == {TOOL["page_of"](name).name for name in COMMANDS}
