"""Keeps PySpark's loggers quiet while a session of sqlstream runs: what they would print becomes findings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

OF_PYSPARK = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print every analysis error to stderr, SQL included."""

SILENT = logging.CRITICAL + 1


class _Silence:
    """Loggers that are silent for as long as anybody needs it; afterwards they are as they were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._needed_by = 0
        self._levels: dict[logging.Logger, int] = {}
        self._nowhere = logging.NullHandler()

    def begin(self) -> None:
        with self._lock:
            self._needed_by += 1
            if self._needed_by > 1:
                return
            # PySpark must make its own loggers: a plain one does not take what PySpark logs
            loggers = [*map(PySparkLogger.getLogger, OF_PYSPARK), logging.getLogger("py4j")]
            self._levels = {logger: logger.level for logger in loggers}
            for logger in loggers:
                logger.setLevel(SILENT)
            if not logging.getLogger().handlers:
                # py4j tells the root logger of a lost JVM, and configures it where it has no handler
                logging.getLogger().addHandler(self._nowhere)

    def end(self) -> None:
        with self._lock:
            self._needed_by -= 1
            if self._needed_by:
                return
            for logger, level in self._levels.items():
                if logger.level == SILENT:
                    logger.setLevel(level)
            logging.getLogger().removeHandler(self._nowhere)


_SILENCE = _Silence()


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Silences PySpark's and py4j's loggers while the body runs. A program's own handlers of the root logger stay."""
    _SILENCE.begin()
    try:
        yield
    finally:
        _SILENCE.end()
