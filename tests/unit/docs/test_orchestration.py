"""The examples for schedulers compile, and call commands of this sqlstream with valid options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from tests.tools.command_lines import check_command_line

FOLDER = Path(__file__).parents[3] / "docs" / "orchestration"
EXAMPLES = sorted(FOLDER.glob("*.py"))
PAGE = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
COMMANDS = ("COMPILE", "BUILD", "RETRY")
"""The constants of the examples with a command line."""


def command_lines(example: Path) -> list[list[str]]:
    """Returns the command lines of an example; names such as `TARGET` become a word."""
    assigned = (node for node in ast.parse(example.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign))
    return [
        [str(word.value) if isinstance(word, ast.Constant) else "word" for word in node.value.elts]
        for node in assigned
        if isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in COMMANDS
        and isinstance(node.value, ast.Tuple)
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_compiles_and_its_command_lines_are_valid(example: Path) -> None:
    """Each example is valid Python, and click accepts all of its command lines."""
    compile(example.read_text(encoding="utf-8"), str(example), "exec")

    lines = command_lines(example)
    assert {"build", "retry"} <= {line[0] for line in lines}
    for words in lines:
        check_command_line(words)


def test_the_check_finds_an_unknown_option() -> None:
    """A command line with a typo is refused."""
    with pytest.raises(click.UsageError):
        check_command_line(["build", "--avalaible-now"])


def test_the_command_lines_of_the_page_are_valid() -> None:
    """Click accepts each `sqlstream` command on the page."""
    lines = re.findall(r"(?<![/\w])sqlstream ((?:build|retry|plan|status)[^`'|\n]*)", PAGE)

    assert len(lines) > 5
    for line in lines:
        check_command_line(line.split("]")[0].split())


def test_each_example_is_on_the_page() -> None:
    """The page links to each example."""
    assert all(f"](orchestration/{example.name})" in PAGE for example in EXAMPLES)
