"""Writes the history of a run while it runs, in a background thread, so that no query waits for it."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.observe.record import journal_files
from sqlstream.history.store import History

INTERVAL_SECONDS = 5.0
"""How often new lines of the journal are written to the history."""

CLOSE_SECONDS = 3.0
"""How long the end of a run waits for the last lines. `sqlstream ui` or the next run writes what is left."""

logger = logging.getLogger("sqlstream.history")


class HistoryKeeper:
    """Writes the journal of the project at `root` to its history, from `start` until the end of the body.

    `report` gets a sentence about a file that cannot be used, once, in the background thread.
    """

    def __init__(self, root: Path, report: Callable[[str], None]) -> None:
        self._logs = root / LOGS_FOLDER
        self._report = report
        self._has_reported = False
        self._ended = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._work, name="history", daemon=True)

    def __enter__(self) -> HistoryKeeper:
        """Returns itself; begins nothing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes the last lines, and ends the thread."""
        self._ended = True
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_SECONDS)

    def start(self) -> None:
        """Begins to write the history."""
        self._thread.start()

    def wake(self) -> None:
        """Writes the history now: a file of the journal was renamed, and the oldest one removed."""
        self._woken.set()

    def _work(self) -> None:
        history = History(self._logs, journal_files(self._logs))
        for problem in history.problems:
            self._note(problem)
        while history.is_stored:
            is_last = self._ended
            self._ingest(history)
            if is_last:
                break
            self._woken.wait(INTERVAL_SECONDS)
            self._woken.clear()
        history.close()

    def _ingest(self, history: History) -> None:
        known = len(history.problems)
        try:
            history.ingest()
        except (OSError, sqlite3.Error) as error:
            logger.exception("the history was not written")
            self._note(f"logs/{history.path.name} cannot be written ({error}); the run continues without it")
        for problem in history.problems[known:]:
            self._note(problem)

    def _note(self, problem: str) -> None:
        if not self._has_reported:
            self._has_reported = True
            self._report(problem)
