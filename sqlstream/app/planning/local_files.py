"""Local storage, read without Spark."""

from __future__ import annotations

from pathlib import Path

from sqlstream.app.loading.load import Loaded
from sqlstream.errors import Finding
from sqlstream.project.files.paths import plain_path


class LocalFiles:
    """Files of the local file system. Raises OSError for what it may not read."""

    def read_text(self, path: str) -> str | None:
        """See `ReadableFiles`."""
        try:
            return Path(path).read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> tuple[str, ...]:
        """See `ReadableFiles`."""
        try:
            return tuple(sorted(path.name for path in Path(folder).iterdir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def exists(self, path: str) -> bool:
        """See `ExistingFiles`."""
        return Path(path).exists()

    def modified(self, path: str) -> float | None:
        """See `DatedFiles`."""
        try:
            return Path(path).stat().st_mtime
        except FileNotFoundError:
            return None


def files_of(path: str) -> tuple[LocalFiles, str]:
    """Returns the files at a local path, and the path."""
    return LocalFiles(), path


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
