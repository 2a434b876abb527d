"""The terminal that stdout may be."""

from __future__ import annotations

import shutil
import sys


def terminal_width() -> int | None:
    """Returns how many characters a line of the terminal takes, None where stdout is none: a file may be as wide."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
