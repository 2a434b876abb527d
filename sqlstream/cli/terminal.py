"""The width of the terminal."""

from __future__ import annotations

import shutil
import sys


def terminal_width() -> int | None:
    """Returns the number of characters in a line of the terminal, None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
