"""Formats what a command has written, moved or removed: one JSON object, and progress bars of downloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.report.findings import findings_json
from sqlstream.report.rows import json_text


def created_json(root: Path, files: Iterable[str]) -> str:
    """Returns the folder of a new project, and its files relative to it."""
    return json_text({"project": str(root), "files": list(files)}, indent=2)


def removed_json(removed: Path | None) -> str:
    """Returns the folder that was removed, null for none."""
    return json_text({"removed": None if removed is None else str(removed)}, indent=2)


def jars_json(spark: str, connectors: Iterable[Mapping[str, object]], lock: Path | None) -> str:
    """Returns the jars of each connector for a version of Spark, and the lock if it was written."""
    written = None if lock is None else str(lock)
    return json_text({"spark": spark, "connectors": list(connectors), "written": written}, indent=2)


def site_json(page: Path, nodes: int, size: int, warnings: Iterable[Finding]) -> str:
    """Returns the first page of a documentation site, its nodes and its bytes, and the warnings."""
    site = {"page": str(page), "nodes": nodes, "bytes": size, "findings": findings_json(warnings)}
    return json_text(site, indent=2)


def explanation_json(code: str, summary: str, page: str) -> str:
    """Returns the explanation of a code as a sentence and as a page of Markdown."""
    return json_text({"code": code, "summary": summary, "markdown": page}, indent=2)


class DownloadBars:
    """One bar for each jar, on a terminal."""

    def __init__(self, file: IO[str]) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        self._progress = Progress(*columns, console=Console(file=file), transient=True)
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> DownloadBars:
        """Begins to draw."""
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Removes the bars."""
        self._progress.stop()

    def update(self, name: str, done: int, total: int) -> None:
        """Draws the bytes of one jar so far; `total` is 0 if it is unknown."""
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=total or None)
        self._progress.update(self._bars[name], completed=done)


def connector_line(name: str, count: int, downloaded: int, megabytes: float, stands_in: str, spark: str) -> str:
    """Returns one line about a connector, such as `kafka: 4 jars, 9.9 MB, downloaded`."""
    how = "downloaded" if downloaded == count else f"{downloaded} downloaded" if downloaded else "up to date"
    line = f"{name}: {plural(count, 'jar')}, {megabytes:.1f} MB, {how}"
    return f"{line}; release {stands_in}, because there is none for Spark {spark}" if stands_in else line
