"""The log file of a project, `logs/sqlstream.log`, with all secrets redacted."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from pathlib import Path

from sqlstream.spark.secrets import Secrets

LOGS_FOLDER = "logs"
"""The folder beside project.yml."""

FILE_LAYOUT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
TEMPLATE_LOGGER = "sqlstream.template"
"""The logger of templates. `log(message, info=True)` also prints, as in dbt."""

MAX_BYTES = 10_000_000
BACKUPS = 5
"""The size of one log file, and the number of older files to keep."""


class RedactingFormatter(logging.Formatter):
    """Formats a record and then redacts every secret, in any part of the record."""

    def __init__(self, secrets: Secrets, layout: str = FILE_LAYOUT) -> None:
        super().__init__(layout)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Returns the redacted line of `record`."""
        return self._secrets.redact(super().format(record))


class _LogFile(RotatingFileHandler):
    """Closes its file when the thread that opened the log ends, if the file is still open."""

    def __del__(self) -> None:
        stream = getattr(self, "stream", None)  # None if the file could not be opened
        if stream is not None:
            stream.close()


class ProjectLog(logging.Handler):
    """Sends each record to the log that its thread opened, or else to the log chosen by `adopt_other_threads`."""

    def __init__(self) -> None:
        super().__init__()
        self._of_thread: ContextVar[tuple[logging.Handler, ...]] = ContextVar("log")
        self._of_others: tuple[logging.Handler, ...] = ()

    def open(self, *handlers: logging.Handler) -> None:
        """Sends the records of this thread to `handlers`, and closes its earlier handlers."""
        for handler in self._of_thread.get(()):
            handler.close()
        if self._of_others == self._of_thread.get(()):
            self._of_others = handlers
        self._of_thread.set(handlers)

    def adopt_other_threads(self) -> None:
        """Sends the records of threads without a log to the log of this thread."""
        self._of_others = self._of_thread.get(())

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record."""
        for handler in self._of_thread.get(self._of_others):
            if record.levelno >= handler.level and handler.filter(record):
                handler.handle(record)


PROJECT_LOG = ProjectLog()


def open_log(root: Path, env: Mapping[str, str]) -> None:
    """Sends the records of the `sqlstream` loggers in this thread to the project's log file.

    Handlers of the calling program stay. A folder that is not writable is not an error; `sqlstream debug` reports it.
    """
    logger = logging.getLogger("sqlstream")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(PROJECT_LOG)
    PROJECT_LOG.open(*_log_file(root, env), _printed_messages(env))


def _log_file(root: Path, env: Mapping[str, str]) -> Iterator[logging.Handler]:
    try:
        (root / LOGS_FOLDER).mkdir(exist_ok=True)
        handler = _LogFile(
            root / LOGS_FOLDER / "sqlstream.log", maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8"
        )
    except OSError:
        return
    handler.setFormatter(RedactingFormatter(Secrets(env)))
    yield handler


def _printed_messages(env: Mapping[str, str]) -> logging.Handler:
    """Returns the handler that prints messages of templates with `info=True`."""
    printed = logging.StreamHandler()
    printed.setLevel(logging.INFO)
    printed.addFilter(logging.Filter(TEMPLATE_LOGGER))
    printed.setFormatter(RedactingFormatter(Secrets(env), "%(message)s"))
    return printed
