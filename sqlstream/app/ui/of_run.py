"""`run --ui`: the page during a run."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from sqlstream.app.request import RunRequest


class PageOfRun:
    """The page of a run, if the request asks for one. Opens the port at once, and answers from `start` on.

    Raises: UsageError if the port cannot be opened.
    """

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._stack = ExitStack()
        self._listening = None
        if request.ui is not None:
            from sqlstream.app.ui.serve import listen  # most runs need none of it

            self._listening = listen(request.ui)
            self._stack.callback(self._listening.socket.close)

    def start(self) -> None:
        """Serves the page, and prints its URL: not as an event, because the URL may have a token."""
        if self._listening is not None:
            from sqlstream.app.ui.serve import serving

            url = self._stack.enter_context(serving(self._listening, self._request.project))
            self._request.project.notify(f"The page is at {url}")

    def __enter__(self) -> PageOfRun:
        """Returns itself; serves nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the page."""
        self._stack.close()
