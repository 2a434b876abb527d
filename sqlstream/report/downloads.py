"""The output of `sqlstream deps`: progress bars of downloads, and a line for each connector."""

from __future__ import annotations

from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from sqlstream.numbers import plural


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
