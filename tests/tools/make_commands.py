"""Writes the tables of options in docs/commands/*.md from the commands.

    .venv/bin/python -m tests.tools.make_commands

Everything else on a page is written by hand. A command without a page gets an empty page.
tests/unit/cli/test_command_pages.py fails when a table is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from sqlstream.cli.main import cli

FOLDER = Path(__file__).parents[2] / "docs" / "commands"
TABLE = re.compile(r"(?s)(?<=<!-- options -->\n).*?(?=<!-- end of options -->)")
SECTIONS = ("Example", "Options", "Exit codes")
"""The sections of every page, in this order. Other sections come before the last one."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yields each command with its full name, such as `source schema`."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", child) for below, child in sorted(command.commands.items()))
        elif command is not None:
            yield name, command


def page_of(name: str) -> Path:
    """Returns the page of a command: `source-schema.md` for `source schema`."""
    return FOLDER / f"{name.replace(' ', '-')}.md"


def usage(name: str, command: click.Command) -> str:
    """Returns the usage line of a page."""
    arguments = [
        param.make_metavar(click.Context(command)) for param in command.params if isinstance(param, click.Argument)
    ]
    return " ".join(["sqlstream", name, *arguments, "[OPTIONS]"])


def options_table(command: click.Command) -> str:
    """Returns the table of a command's options: all spellings, in the command's order, with environment variables."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    rows = [f"| {_spellings(option)} | {_variable(option)} | {_help(option)} |" for option in options]
    if not rows:
        return "None."
    return "\n".join(["| option | environment variable | meaning |", "| --- | --- | --- |", *rows])


def _spellings(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} {' or '.join(f'`{choice}`' for choice in option.type.choices)}"
    return f"{names} {option.make_metavar(click.Context(click.Command('x')))}"


def _variable(option: click.Option) -> str:
    return f"`{option.envvar}`" if option.envvar else ""


def _help(option: click.Option) -> str:
    default = f" Default: {option.default}." if option.show_default else ""
    several = " Can be given more than once." if option.multiple and "more than once" not in (option.help or "") else ""
    return f"{(option.help or '').replace('|', chr(92) + '|')}{default}{several}"


def fill_table(page: str, command: click.Command) -> str:
    """Returns the page with an updated table of options."""
    return TABLE.sub(lambda _: f"\n{options_table(command)}\n\n", page)


def write_pages() -> None:
    """Writes all pages."""
    for name, command in commands():
        path = page_of(name)
        page = path.read_text(encoding="utf-8") if path.exists() else _empty_page(name, command)
        path.write_text(fill_table(page, command), encoding="utf-8")


def _empty_page(name: str, command: click.Command) -> str:
    title = f"# {name}\n\n```text\n{usage(name, command)}\n```\n\n{command.help or ''}\n"
    example = "\n## Example\n\n## Options\n\n<!-- options -->\n\n<!-- end of options -->\n\n## Exit codes\n"
    return title + example


if __name__ == "__main__":
    write_pages()
