"""The log file of a project."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread

import pytest

from sqlstream.app.loading import logs
from sqlstream.app.loading.logs import BACKUPS, PROJECT_LOG, open_log
from sqlstream.app.session.session import line_logger
from sqlstream.spark.secrets import Secrets

ENV = {"SQLSTREAM_SECRET_TOKEN": "hunter22", "HOME": "/home/me"}
LOGGER = logging.getLogger("sqlstream")


@pytest.fixture(autouse=True)
def _close_logs() -> Iterator[None]:
    """Restores the loggers."""
    level, propagate, is_open = LOGGER.level, LOGGER.propagate, PROJECT_LOG in LOGGER.handlers
    yield
    PROJECT_LOG.open()
    LOGGER.setLevel(level)
    LOGGER.propagate = propagate
    if not is_open:
        LOGGER.removeHandler(PROJECT_LOG)


def read_log(root: Path) -> str:
    """Returns the text of a project's log."""
    return (root / "logs/sqlstream.log").read_text(encoding="utf-8")


def test_messages_of_loggers_are_written(tmp_path: Path) -> None:
    """Loggers below `sqlstream` write to the log, also debug messages; the root logger and terminal get nothing."""
    open_log(tmp_path, ENV)

    logging.getLogger("sqlstream.run").debug("größe %d", 7)

    line = read_log(tmp_path)
    assert line.endswith(" DEBUG   sqlstream.run: größe 7\n")
    assert not LOGGER.propagate


def test_a_secret_is_masked_everywhere(tmp_path: Path) -> None:
    """A secret is masked in the message, in its arguments and in the text of an exception."""
    open_log(tmp_path, ENV)
    logger = logging.getLogger("sqlstream.hunter22")

    try:
        int("hunter22")
    except ValueError:
        logger.exception("failed with %s", {"password": "hunter22"}, stack_info=True)

    text = read_log(tmp_path)
    assert "hunter22" not in text
    assert "ValueError: invalid literal for int() with base 10: '*****'" in text


def test_the_log_is_opened_once(tmp_path: Path) -> None:
    """A second call in one process appends to the log and neither repeats nor loses lines."""
    for number in range(2):
        open_log(tmp_path, ENV)
        LOGGER.info("call %d", number)

    assert [line[-6:] for line in read_log(tmp_path).splitlines()] == ["call 0", "call 1"]


def test_another_project_has_its_own_log(tmp_path: Path) -> None:
    """Lines go to the log of the project that was opened last."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        open_log(tmp_path / name, ENV)
        LOGGER.info("in %s", name)

    assert read_log(tmp_path / "a").splitlines()[-1].endswith("in a")
    assert read_log(tmp_path / "b").count("\n") == 1


def test_the_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old log files are removed when the size limit is reached."""
    monkeypatch.setattr(logs, "MAX_BYTES", 1_000)
    open_log(tmp_path, ENV)

    for _ in range((BACKUPS + 2) * 10):
        LOGGER.info("x" * 100)

    files = list((tmp_path / "logs").iterdir())
    assert len(files) == 1 + BACKUPS
    assert max(file.stat().st_size for file in files) <= 1_000


def test_each_thread_has_the_log_of_its_project(tmp_path: Path) -> None:
    """Each thread writes to its own project's log, with that project's secrets masked."""
    both_are_open = Barrier(2, timeout=60)

    def work(name: str) -> None:
        (tmp_path / name).mkdir()
        open_log(tmp_path / name, {"SQLSTREAM_SECRET_TOKEN": f"secret-of-{name}"})
        both_are_open.wait()
        LOGGER.info("in %s with secret-of-%s", name, name)
        both_are_open.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ("a", "b")))

    for name in ("a", "b"):
        assert [line.split(": ")[1] for line in read_log(tmp_path / name).splitlines()] == [f"in {name} with *****"]


def test_a_thread_without_a_project_uses_the_adopting_log(tmp_path: Path) -> None:
    """A thread without a project, such as the reader of the JVM's output, writes to the log that adopts it."""
    open_log(tmp_path, ENV)
    PROJECT_LOG.adopt_other_threads()

    thread = Thread(target=LOGGER.info, args=("from elsewhere",))
    thread.start()
    thread.join()

    assert read_log(tmp_path).endswith("from elsewhere\n")


def test_a_programs_own_handler_stays(tmp_path: Path) -> None:
    """A program's own handler still receives the lines that are written to the log."""
    heard: list[str] = []
    own = logging.Handler()
    own.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    LOGGER.addHandler(own)
    try:
        open_log(tmp_path, ENV)
        LOGGER.info("both hear this")
    finally:
        LOGGER.removeHandler(own)

    assert heard == ["both hear this"]


@pytest.mark.parametrize("blocked", ["logs", "logs/sqlstream.log/x"], ids=["folder", "file"])
def test_an_unwritable_log_is_no_error(tmp_path: Path, blocked: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A log that cannot be written raises and prints nothing; `sqlstream debug` reports it."""
    path = tmp_path / blocked
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")

    open_log(tmp_path, ENV)
    LOGGER.error("nobody hears this")

    assert capfd.readouterr() == ("", "")


def test_secrets_in_jvm_output_are_masked_for_other_handlers(caplog: pytest.LogCaptureFixture) -> None:
    """Secrets in the JVM's output are masked before any handler of the program receives the line."""
    propagates, LOGGER.propagate = LOGGER.propagate, True
    try:
        with caplog.at_level(logging.INFO, "sqlstream"):
            line_logger(Secrets(ENV))("password=hunter22 refused")
    finally:
        LOGGER.propagate = propagates

    assert set(caplog.messages) == {"password=***** refused"}
