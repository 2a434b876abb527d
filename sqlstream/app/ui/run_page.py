"""The history of a run while it runs, written in a background thread so that no query waits for it, and its page."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.observe.record import journal_files
from sqlstream.app.request import RunRequest
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
        self.history: History | None = None
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
        if self.history is not None:
            self._thread.join(CLOSE_SECONDS)
            self.history.close()

    def start(self) -> None:
        """Begins to write the history."""
        self.history = History(self._logs, journal_files(self._logs))
        self._thread.start()

    def wake(self) -> None:
        """Writes the history now: a file of the journal was renamed, and the oldest one removed."""
        self._woken.set()

    def _work(self) -> None:
        history = self.history
        if history is None:
            return
        for problem in history.problems:
            self._note(problem)
        while history.is_stored:
            # asked before the last look, so that it finds everything that was written before the end
            is_last = self._ended
            self._ingest(history)
            if is_last:
                break
            self._woken.wait(INTERVAL_SECONDS)
            self._woken.clear()

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


class PageOfRun:
    """The page of a run, if the request asks for one. Opens the port at once, and answers from `start` on, from the
    history of `keeper`, which must have started then: the journal is read once for both.

    Raises: UsageError if the port cannot be opened.
    """

    def __init__(self, request: RunRequest, keeper: HistoryKeeper) -> None:
        self._request, self._keeper = request, keeper
        self._stack = ExitStack()
        self._listening = None
        if request.ui is not None:
            from sqlstream.app.session.listening import listen  # most runs need none of it

            self._listening = listen(request.ui)
            self._stack.callback(self._listening.socket.close)

    def start(self) -> None:
        """Serves the page, and prints its URL: not as an event, because the URL may have a token."""
        if self._listening is not None:
            from sqlstream.app.ui.serve import serving

            url = self._stack.enter_context(serving(self._listening, self._request.project, self._keeper.history))
            self._request.project.notify(f"The page is at {url}")

    def __enter__(self) -> PageOfRun:
        """Returns itself; serves nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the page."""
        self._stack.close()
