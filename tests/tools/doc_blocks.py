"""Finds the code blocks in the documentation, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/*/README.md"))
    if path.name != "CHANGELOG.md"  # it describes earlier versions
)

KINDS = {
    "console": "commands after `$ ` with their output: tests run them and compare the output",
    "text": "output that needs a fault, a server or minutes: tests parse the commands in it",
    "sh": "shell commands that need more than a project (make, pip, docker): tests check their syntax",
    "yaml": "project files: tests load them",
    "yml": "files of other tools, such as Prometheus and Kubernetes: tests parse them",
    "sql": "models over the worked examples: tests compile them",
    "json": "JSON: tests parse it",
    "python": "a Python model, or a file of a tool that is not installed here: tests compile it",
    "ini": "systemd units: tests check them if systemd is installed",
    "cron": "lines of a crontab: tests parse their commands",
    "dockerfile": "images: tests parse their commands, because a build needs a daemon and a registry",
}
"""The kinds of blocks in the documentation, and how tests check them."""

_FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
_SQLSTREAM = re.compile(r"(?:^|[\s\"'`(/])(?<!--tag )(?<!-u )(?<!lib/)(?<!cache/)sqlstream(?=\s)")
"""The command, but not an image, a user or a folder of the same name."""

COMMAND = "$ "


@dataclass(frozen=True)
class Block:
    """A code block: its page, its first line, its kind, its text, and whether it is about the worked examples."""

    page: str
    line: int
    kind: str
    text: str
    of_examples: bool

    def __str__(self) -> str:
        """Returns the location, for the names of tests."""
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands after a prompt."""
        return tuple(line.removeprefix(COMMAND) for line in self.text.splitlines() if line.startswith(COMMAND))


def blocks(*kinds: str) -> list[Block]:
    """Returns the blocks of these kinds (default: all) in all pages.

    A block after the comment `<!-- of the examples -->` is about the project in the repository's root. Others are about
    a new project of `sqlstream init shop`.
    """
    return [block for page in PAGES for block in _blocks_of(page) if not kinds or block.kind in kinds]


def _blocks_of(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        examples = before.rstrip().endswith("<!-- of the examples -->")
        yield Block(page, before.count("\n") + 1, match[1], match[2], examples)


def sqlstream_arguments(line: str) -> list[str] | None:
    """Returns the arguments of the sqlstream command in a line of a block, None if there is none. The command ends
    before a pipe, a semicolon, a redirection or a comment.
    """
    found = _SQLSTREAM.search(line)
    if found is None:
        return None
    rest = line[found.end() :]
    try:
        return _arguments(rest)
    except ValueError:  # the whole command is in quotes
        return _arguments(rest.rstrip("\"'`)\\,"))


def _arguments(text: str) -> list[str]:
    """Returns the words up to the end of a command. Raises: ValueError for unclosed quotes."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    arguments: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            break
        arguments.append(word)
    return arguments
