"""The output of `sqlstream init`."""

from __future__ import annotations

import shlex
from pathlib import Path

from sqlstream.numbers import plural


def next_steps_text(root: Path, file_count: int, here: Path) -> str:
    """Returns a line about the project in `root`, and the next commands to run in the folder `here`."""
    folder = str(root.relative_to(here)) if root.is_relative_to(here) else str(root)
    steps = (
        (f"cd {shlex.quote(folder)}", "open the project; its README.md describes the files"),
        ("sqlstream compile", "check the project and write the SQL that will run; needs no Java"),
        ("sqlstream test", "run its unit tests; needs Java 17 or later"),
        ("sqlstream run", "run it to the end of its data"),
    )
    width = max(len(command) for command, _ in steps)
    lines = [f"  {command.ljust(width)}   # {what}" for command, what in steps]
    return "\n".join([f"Created {folder} with {plural(file_count, 'file')}. Next steps:", *lines])
