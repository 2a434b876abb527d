"""Which operating systems a Spark of sqlstream's runs on."""

from __future__ import annotations

import sys

from sqlstream.errors import UsageError


def is_windows() -> bool:
    """Returns whether this is Windows, where nothing that needs Spark works."""
    return sys.platform == "win32"


def require_spark_system(command: str) -> None:
    """Raises: UsageError on Windows, for a command that starts Spark."""
    if is_windows():
        raise UsageError(f"`sqlstream {command}` needs Linux or macOS; on Windows, use it in WSL 2")
