"""Runs the commands in the documentation's `console` blocks, and compares their output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sqlstream.app.init import init_project
from tests.tools.doc_blocks import COMMAND, ROOT, Block, sqlstream_arguments

SPARK = ("run", "show", "dev", "debug", "source", "state", "test")
"""The commands that start Spark, besides `compile --check`."""

EXAMPLES = ("project.yml", "sources.yml", "sinks.yml", "models", "macros", "seeds", "tests/data")
"""The files of the worked examples in the repository's root."""

ANY = "..."
"""A line that matches any lines."""

_NUMBERS = re.compile(r"\d[\d.,:]*( kB| MB| s| min)?")
_FILLER = re.compile(r"[.─ ]{2,}")
_FOLDER = re.compile(r"/[\w./-]*/(?=(shop|examples)\b)")


def needs_spark(block: Block) -> bool:
    """Returns whether a command of the block starts Spark."""
    given = [arguments for command in block.commands if (arguments := sqlstream_arguments(command))]
    return any(arguments[0] in SPARK or "--check" in arguments for arguments in given)


def run_block(block: Block, folder: Path) -> str:
    """Runs the block's commands in `folder`, in one shell that stops at the first error, and returns all output.

    `sqlstream` runs the package of this repository.
    """
    shell = f'sqlstream() {{ "{sys.executable}" -m sqlstream "$@"; }}\nset -e\n' + "\n".join(block.commands)
    done = subprocess.run(
        ["sh", "-c", shell],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def missing_lines(block: Block, printed: str, plain: Callable[[str], str] = str) -> list[str]:
    """Returns the lines of the block that were not printed. `plain` removes the parts of a line that may differ."""
    found = {plain(line.rstrip()) for line in printed.splitlines()}
    shown = [line.rstrip() for line in block.text.splitlines() if not line.startswith(COMMAND)]
    return [line for line in shown if line not in ("", ANY) and plain(line) not in found]


def normalize(line: str) -> str:
    """Replaces the numbers, times, folders and fill characters in a line of output."""
    return _FILLER.sub("  ", _NUMBERS.sub("0", _FOLDER.sub("", line))).strip()


def fresh_shop(into: Path) -> Path:
    """Creates the project of `sqlstream init shop` and returns its folder."""
    return init_project("shop", into).root


def copied_examples(into: Path) -> Path:
    """Copies the worked examples and returns their folder."""
    folder = into / "examples"
    for name in EXAMPLES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder
