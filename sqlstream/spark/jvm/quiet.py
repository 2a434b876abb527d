"""Silences PySpark's loggers while a session of sqlstream runs: sqlstream reports the same errors as findings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print every analysis error to stderr, with its SQL."""

SILENT = logging.CRITICAL + 1


class _Silence:
    """Silences the loggers from the first `begin` to the last `end`, and then restores their levels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._levels: dict[logging.Logger, int] = {}
        self._null_handler = logging.NullHandler()

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._silence()

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._restore()

    def _silence(self) -> None:
        # PySpark must create its own loggers: a standard logger does not accept its arguments
        loggers = [*map(PySparkLogger.getLogger, PYSPARK_LOGGERS), logging.getLogger("py4j")]
        self._levels = {logger: logger.level for logger in loggers}
        for logger in loggers:
            logger.setLevel(SILENT)
        if not logging.getLogger().handlers:
            # py4j reports a lost JVM to the root logger, and configures it if it has no handler
            logging.getLogger().addHandler(self._null_handler)

    def _restore(self) -> None:
        for logger, level in self._levels.items():
            if logger.level == SILENT:
                logger.setLevel(level)
        logging.getLogger().removeHandler(self._null_handler)


_SILENCE = _Silence()


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Silences PySpark's and py4j's loggers while the body runs. The program's own handlers of the root logger stay."""
    _SILENCE.begin()
    try:
        yield
    finally:
        _SILENCE.end()
