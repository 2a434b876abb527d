"""Local storage, read without Spark."""

from __future__ import annotations

from pathlib import Path

from sqlstream.app.loading.load import Loaded
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


def files_of(path: str) -> tuple[LocalFiles, str]:
    """Returns the files at a local path, and the path."""
    return LocalFiles(), path


def local_storage(loaded: Loaded) -> str | None:
    """Returns the folder of the target's storage, None if it is not on the local file system."""
    project = loaded.compiled.project
    folder = plain_path(str(project.root), project.target.storage)
    return folder if folder.startswith("/") else None
