"""Local storage, read without Spark."""

from __future__ import annotations

from sqlstream.app.loading.load import Loaded
from sqlstream.errors import Finding
from sqlstream.project.files.paths import plain_path
from sqlstream.spark.storage.local import LocalStorage


def files_of(path: str) -> tuple[LocalStorage, str]:
    """Returns the files at a local path, and the path."""
    return LocalStorage(), path


def local_storage(loaded: Loaded) -> str | None:
    """Returns the folder of the target's storage, None if it is not on the local file system."""
    project = loaded.compiled.project
    folder = plain_path(str(project.root), project.target.storage)
    return folder if folder.startswith("/") else None


def remote_storage(loaded: Loaded, command: str) -> Finding:
    """Returns the finding that `command` cannot read the storage of the target without Spark."""
    target = loaded.compiled.project.target
    return Finding(
        "storage-unusable",
        f"the ledgers of target `{target.name}` are in {target.storage}, which only Spark can read",
        f"without --check, `{command}` starts no Spark, so it reads only local storage",
        "add --check",
        target.location,
    )
