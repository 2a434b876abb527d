"""The blocks of code in the documentation, and the commands in them."""

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
    if path.name != "CHANGELOG.md"  # what was true of earlier versions stays there as it was
)

KINDS = {
    "console": "commands after `$ ` with what they print: they run, and print it",
    "text": "what is printed, where making it takes a fault, a server or minutes; commands in it are parsed",
    "sh": "commands for a shell that need more than a project (make, pip, docker): their syntax is checked",
    "yaml": "project files: they load",
    "sql": "models over the worked examples: they compile",
    "json": "JSON: it is parsed",
    "python": "Python: it is compiled; a model, or a file of a tool that is not installed here",
    "ini": "units of systemd: systemd checks them where it is installed",
    "cron": "lines of a crontab: their commands are parsed; a daemon would have to wait for the hour",
    "dockerfile": "images: the commands in them are parsed; building one takes a daemon and a registry",
}
"""Every kind of block that the documentation may have, and what is done with it."""

_FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
_SQLSTREAM = re.compile(r"(?:^|[\s\"'`(/])(?<!--tag )(?<!-u )(?<!lib/)(?<!cache/)sqlstream(?=\s)")
"""The command, which is not the name of an image, a user or a folder."""

COMMAND = "$ "


@dataclass(frozen=True)
class Block:
    """A block of code: its page, the line that it begins in, its kind, its text, and whether it is about the examples."""

    page: str
    line: int
    kind: str
    text: str
    of_examples: bool

    def __str__(self) -> str:
        """For the names of tests."""
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands after a prompt."""
        return tuple(line.removeprefix(COMMAND) for line in self.text.splitlines() if line.startswith(COMMAND))


def blocks(*kinds: str) -> list[Block]:
    """Returns the blocks of these kinds in all pages, of any kind if none is given.

    A block after the comment `<!-- of the examples -->` is about the project in the repository's root; others are about
    one fresh from `sqlstream init shop`.
    """
    return [block for page in PAGES for block in _blocks_of(page) if not kinds or block.kind in kinds]


def _blocks_of(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        examples = before.rstrip().endswith("<!-- of the examples -->")
        yield Block(page, before.count("\n") + 1, match[1], match[2], examples)


def sqlstream_arguments(line: str) -> list[str] | None:
    """Returns the arguments of the sqlstream command in a line of a block, None where there is none.

    What follows a pipe, a semicolon, a redirection or a comment is no part of it.
    """
    found = _SQLSTREAM.search(line)
    if found is None:
        return None
    rest = line[found.end() :]
    try:
        return _arguments(rest)
    except ValueError:  # the command stands in quotes itself
        return _arguments(rest.rstrip("\"'`)\\,"))


def _arguments(text: str) -> list[str]:
    """The words up to the end of a command. Raises: ValueError for quotes that do not end."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    arguments: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            break
        arguments.append(word)
    return arguments
