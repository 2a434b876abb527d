"""The operating systems on which sqlstream can start Spark."""

from __future__ import annotations

import sys

from sqlstream.errors import UsageError


def is_windows() -> bool:
    """Returns whether this is Windows, where sqlstream cannot start Spark."""
    return sys.platform == "win32"


def require_spark_system(command: str) -> None:
    """Raises: UsageError on Windows. For commands that start Spark."""
    if is_windows():
        raise UsageError(f"`sqlstream {command}` needs Linux or macOS; on Windows, use it in WSL 2")
