"""`sqlstream clean`: removes target/, which other commands create again. Never removes checkpoints or data."""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlstream.errors import UsageError
from sqlstream.project.files.files import find_project_root
from sqlstream.state.layout import LEDGER_NAME

STORED = (LEDGER_NAME, "_spark_metadata")
"""Names that show a checkpoint or the output of a file sink."""


def clean_project(folder: Path) -> Path | None:
    """Removes the project's target/ folder and returns its path, or None if there was none.

    Raises: UsageError if target/ is a link or contains a target's storage, because removing it could delete data.
    """
    target = find_project_root(folder) / "target"
    if target.is_symlink():
        raise UsageError(f"{target} is a symbolic link; remove it manually")
    if not target.exists():
        return None
    if not target.is_dir():
        raise UsageError(f"{target} is not a folder; remove it manually")
    kept = next((path for name in STORED for path in target.rglob(name)), None)
    if kept is not None:
        raise UsageError(f"{target} contains data or checkpoints ({kept}); move the storage of the target first")
    shutil.rmtree(target)
    return target
