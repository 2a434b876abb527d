"""Drops PySpark's log records about sqlstream's own calls: sqlstream reports the same errors as findings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print every analysis error to stderr, with its SQL."""

PY4J_LOGGERS = ("py4j", "py4j.java_gateway", "py4j.clientserver")
"""They report each lost connection to the JVM, also at its normal end. A filter does not apply to loggers below."""


class _OwnRecords(logging.Filter):
    """Drops records from sqlstream's threads while a session or a parser runs.

    These are the threads that start it, and all threads that start later. Threads of the program that already run
    keep their records, and so do all levels and handlers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._users = 0
        self._others: set[int | None] = set()
        self._null_handler = logging.NullHandler()

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether the record is from a thread of the program."""
        return record.thread in self._others

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._others = {thread.ident for thread in threading.enumerate()}
                self._attach()
            self._others.discard(threading.get_ident())

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                for logger in _loggers():
                    logger.removeFilter(self)
                logging.getLogger().removeHandler(self._null_handler)

    def _attach(self) -> None:
        for logger in _loggers():
            logger.addFilter(self)
        if not logging.getLogger().handlers:
            # py4j reports a lost JVM to the root logger, and configures it if it has no handler
            logging.getLogger().addHandler(self._null_handler)


def _loggers() -> list[logging.Logger]:
    # PySpark must create its own loggers: a standard logger does not accept its arguments
    return [*map(PySparkLogger.getLogger, PYSPARK_LOGGERS), *map(logging.getLogger, PY4J_LOGGERS)]


_OWN_RECORDS = _OwnRecords()


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Drops the log records of PySpark and py4j about sqlstream's calls while the body runs."""
    _OWN_RECORDS.begin()
    try:
        yield
    finally:
        _OWN_RECORDS.end()
