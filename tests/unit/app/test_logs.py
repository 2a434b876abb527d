"""The log file of a project."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from sqlstream.app.loading.logs import BACKUPS, MAX_BYTES, open_log

ENV = {"SQLSTREAM_SECRET_TOKEN": "hunter22", "HOME": "/home/me"}
LOGGER = logging.getLogger("sqlstream")


@pytest.fixture(autouse=True)
def _close_logs() -> Iterator[None]:
    """Leaves the loggers as they were."""
    handlers, level, propagate = list(LOGGER.handlers), LOGGER.level, LOGGER.propagate
    yield
    for handler in list(LOGGER.handlers):
        LOGGER.removeHandler(handler)
        handler.close()
    for handler in handlers:
        LOGGER.addHandler(handler)
    LOGGER.setLevel(level)
    LOGGER.propagate = propagate


def read_log(root: Path) -> str:
    """Returns the text of a project's log."""
    return (root / "logs/sqlstream.log").read_text(encoding="utf-8")


def test_what_the_loggers_say_is_written(tmp_path: Path) -> None:
    """Those below `sqlstream` too, down to debug; nothing reaches the root logger and so the terminal."""
    open_log(tmp_path, ENV)

    logging.getLogger("sqlstream.run").debug("größe %d", 7)

    line = read_log(tmp_path)
    assert line.endswith(" DEBUG   sqlstream.run: größe 7\n")
    assert not LOGGER.propagate


def test_a_secret_is_struck_out_wherever_it_stands(tmp_path: Path) -> None:
    """In the message, its arguments and the text of an exception."""
    open_log(tmp_path, ENV)
    logger = logging.getLogger("sqlstream.hunter22")

    try:
        int("hunter22")
    except ValueError:
        logger.exception("failed with %s", {"password": "hunter22"}, stack_info=True)

    text = read_log(tmp_path)
    assert "hunter22" not in text
    assert "ValueError: invalid literal for int() with base 10: '*****'" in text


def test_the_log_is_added_to_and_opened_once(tmp_path: Path) -> None:
    """A second call in one process neither doubles the lines nor loses the first."""
    for number in range(2):
        open_log(tmp_path, ENV)
        LOGGER.info("call %d", number)

    assert [line[-6:] for line in read_log(tmp_path).splitlines()] == ["call 0", "call 1"]
    assert len(LOGGER.handlers) == 1


def test_another_project_has_a_log_of_its_own(tmp_path: Path) -> None:
    """The last project that was opened gets the lines."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        open_log(tmp_path / name, ENV)
        LOGGER.info("in %s", name)

    assert read_log(tmp_path / "a").splitlines()[-1].endswith("in a")
    assert read_log(tmp_path / "b").count("\n") == 1


def test_the_log_is_bounded(tmp_path: Path) -> None:
    """Old files make room for new ones."""
    open_log(tmp_path, ENV)

    (handler,) = LOGGER.handlers
    assert isinstance(handler, RotatingFileHandler)
    assert (handler.maxBytes, handler.backupCount) == (MAX_BYTES, BACKUPS)


@pytest.mark.parametrize("blocked", ["logs", "logs/sqlstream.log/x"], ids=["folder", "file"])
def test_a_log_that_cannot_be_written_is_no_error(
    tmp_path: Path, blocked: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is raised or printed, now or when something is said; `sqlstream debug` tells of it."""
    path = tmp_path / blocked
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")

    open_log(tmp_path, ENV)
    LOGGER.error("nobody hears this")

    assert capfd.readouterr() == ("", "")
