"""The log file of a project, `logs/sqlstream.log`, with every secret struck out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
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


def open_log(root: Path, env: Mapping[str, str]) -> None:
    """Sends what the `sqlstream` loggers say to the project's log file.

    A folder that cannot be written is no error here, since `sqlstream debug` reports it.
    """
    logger = logging.getLogger("sqlstream")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    _remove_handlers(logger)
    _print_templates_messages(env)
    try:
        (root / LOGS_FOLDER).mkdir(exist_ok=True)
        handler = RotatingFileHandler(
            root / LOGS_FOLDER / "sqlstream.log", maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8"
        )
    except OSError:
        logger.addHandler(logging.NullHandler())
        return
    handler.setFormatter(RedactingFormatter(Secrets(env)))
    logger.addHandler(handler)


def _print_templates_messages(env: Mapping[str, str]) -> None:
    logger = logging.getLogger(TEMPLATE_LOGGER)
    _remove_handlers(logger)
    printed = logging.StreamHandler()
    printed.setLevel(logging.INFO)
    printed.setFormatter(RedactingFormatter(Secrets(env), "%(message)s"))
    logger.addHandler(printed)


def _remove_handlers(logger: logging.Logger) -> None:
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
