"""The log file of a project, `logs/sqlstream.log`, with every secret struck out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from pathlib import Path

from sqlstream.spark.secrets import Secrets

LOGS_FOLDER = "logs"
"""Beside project.yml."""

FILE_LAYOUT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
TEMPLATE_LOGGER = "sqlstream.template"
"""What templates log; `log(message, info=True)` is also printed, as in dbt."""

MAX_BYTES = 10_000_000
BACKUPS = 5
"""Size of one log file, and how many older ones are kept."""


class RedactingFormatter(logging.Formatter):
    """Formats a record and then strikes out every secret, whatever part of the record it stood in."""

    def __init__(self, secrets: Secrets, layout: str = FILE_LAYOUT) -> None:
        super().__init__(layout)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of `record`."""
        return self._secrets.redact(super().format(record))


class _LogFile(RotatingFileHandler):
    """Closes its file with the thread that opened the log, where nothing closes it before."""

    def __del__(self) -> None:
        stream = getattr(self, "stream", None)  # none where the file could not be opened
        if stream is not None:
            stream.close()


class ProjectLog(logging.Handler):
    """Hands each record to the log of the project that its thread works on, else to the one of `take_other_threads`."""

    def __init__(self) -> None:
        super().__init__()
        self._of_thread: ContextVar[tuple[logging.Handler, ...]] = ContextVar("log")
        self._of_others: tuple[logging.Handler, ...] = ()

    def open(self, *handlers: logging.Handler) -> None:
        """Has the records of this thread go to `handlers`, and closes those that got them before."""
        for handler in self._of_thread.get(()):
            handler.close()
        if self._of_others == self._of_thread.get(()):
            self._of_others = handlers
        self._of_thread.set(handlers)

    def take_other_threads(self) -> None:
        """Has the records of threads that opened no log go to that of this thread."""
        self._of_others = self._of_thread.get(())

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record."""
        for handler in self._of_thread.get(self._of_others):
            if record.levelno >= handler.level and handler.filter(record):
                handler.handle(record)


PROJECT_LOG = ProjectLog()


def open_log(root: Path, env: Mapping[str, str]) -> None:
    """Sends what the `sqlstream` loggers say in this thread to the project's log file.

    The program's own handlers stay. A folder that cannot be written is no error: `sqlstream debug` reports it.
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
    """What templates log with `info=True`."""
    printed = logging.StreamHandler()
    printed.setLevel(logging.INFO)
    printed.addFilter(logging.Filter(TEMPLATE_LOGGER))
    printed.setFormatter(RedactingFormatter(Secrets(env), "%(message)s"))
    return printed
