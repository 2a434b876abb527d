"""Only one process at a time can lock a file."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sqlstream.spark.storage.locks import LockedError, file_lock, lock_holder

LOCK = """
import sys, time
from pathlib import Path
from sqlstream.spark.storage.locks import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def start_holder(path: Path) -> subprocess.Popen[str]:
    """Returns a process that has locked the file."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """A second process cannot lock the file; the error names the first process and its host."""
    path = tmp_path / "new" / "run.lock"
    process = start_holder(path)

    with (
        pytest.raises(LockedError, match=rf"^process {process.pid} on {socket.gethostname()}, since 2"),
        file_lock(path),
    ):
        pass

    process.communicate("")
    with file_lock(path):
        assert f"process {os.getpid()} " in path.read_text()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """After a kill, the file remains, but another process can lock it."""
    path = tmp_path / "run.lock"
    process = start_holder(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    with file_lock(path):
        assert f"process {os.getpid()} " in path.read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write any file")
def test_a_read_only_file_can_be_locked(tmp_path: Path) -> None:
    """The lock works on a file that can only be read, such as that of another user's run."""
    path = tmp_path / "run.lock"
    path.touch(mode=0o444)

    with file_lock(path), pytest.raises(LockedError), file_lock(path):
        pass


def test_the_holder_of_a_lock_can_be_read(tmp_path: Path) -> None:
    """The holder is read without the lock: twice, while it holds it, and no more after it has ended or was killed."""
    path = tmp_path / "run.lock"
    assert lock_holder(path) is None
    process = start_holder(path)
    assert [str(lock_holder(path)).split(",")[0] for _ in range(2)] == [
        f"process {process.pid} on {socket.gethostname()}"
    ] * 2

    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert lock_holder(path) is None
    path.write_text(f"process {os.getpid()} on {socket.gethostname()}, since 2024-01-01 00:00:00 UTC")
    assert lock_holder(path) is None
    path.write_text("process 1 on another-machine, since 2024-01-01 00:00:00 UTC")
    assert lock_holder(path) is None


def test_reading_the_holder_does_not_refuse_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that wants to lock a file in the moment in which another one reads its holder gets the lock."""
    path = tmp_path / "run.lock"
    path.touch()
    reader = os.open(path, os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH | fcntl.LOCK_NB)
    monkeypatch.setattr(time, "sleep", lambda _seconds: os.close(reader))

    with file_lock(path):
        assert f"process {os.getpid()} " in path.read_text()
