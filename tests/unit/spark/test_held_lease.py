"""Only one run has the lease of a query, and a run that loses it finds out."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlstream.spark.storage import locks
from sqlstream.spark.storage.lease import Lease, LeaseWatch, LocalLeaseFiles, lease, this_holder
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.locks import HeldLock, LockedError, LockLostError
from sqlstream.spark.storage.query_locks import folder_lock
from sqlstream.state.runs.lease_rules import (
    PERIODS_TO_LIVE,
    Availability,
    Holder,
    beat_name,
    holder_name,
    newest_token,
    released_name,
    token_of,
)

SHORT, LIVELY, LONG = 0.05, 1.0, 3600.0
"""Periods of heartbeats, in seconds: one that passes soon, one for runs that must not expire on a busy machine, and one
that does not pass during a test.
"""

WAIT_SECONDS = 60.0

HOLD = """
import sys
from sqlstream.spark.storage.lease import lease, this_holder
from sqlstream.spark.storage.lease import LocalLeaseFiles
with lease(LocalLeaseFiles(sys.argv[1]), this_holder(float(sys.argv[2])), print):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def files(tmp_path: Path) -> LocalLeaseFiles:
    """The files of a query that no run has."""
    return LocalLeaseFiles(str(tmp_path / "v1.lease"))


class BrokenFiles(LocalLeaseFiles):
    """Files that cannot be listed once `is_broken` is set."""

    is_broken = False

    def names(self) -> tuple[str, ...]:
        """Raises: OSError."""
        if self.is_broken:
            raise OSError(errno.EIO, "the storage does not respond")
        return super().names()


def start_holder(folder: Path, period: float) -> subprocess.Popen[str]:
    """Returns a process that has the lease."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), str(period)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def foreign_holder(period: float) -> Holder:
    """Returns a run on another machine."""
    return Holder("another", "process 7 on etl-7", "another machine", ((7, "start"),), period)


def never(text: str) -> None:
    """Fails if a run waits for another one."""
    raise AssertionError(text)


def test_a_second_process_is_refused(tmp_path: Path, files: LocalLeaseFiles) -> None:
    """A process with heartbeats keeps the lease; after its end the lease is free at once."""
    process = start_holder(tmp_path / "v1.lease", LIVELY)
    waits: list[str] = []

    with (
        pytest.raises(LockedError, match=rf"^process {process.pid} on "),
        lease(files, this_holder(LONG), waits.append),
    ):
        pass

    assert len(waits) == 1
    process.communicate("")
    with lease(files, this_holder(LONG), never):
        assert {token_of(name) for name in files.names()} == {newest_token(files.names())}


def test_the_lease_of_a_killed_process_is_free(tmp_path: Path, files: LocalLeaseFiles) -> None:
    """After a kill, another process on the same machine does not wait."""
    process = start_holder(tmp_path / "v1.lease", LONG)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    with lease(files, this_holder(LONG), never):
        assert newest_token(files.names()) == 2


def test_a_suspended_process_is_taken_over(tmp_path: Path, files: LocalLeaseFiles) -> None:
    """A process that stops renewing is taken over after a wait, although it exists."""
    process = start_holder(tmp_path / "v1.lease", SHORT)
    process.send_signal(signal.SIGSTOP)
    waits: list[str] = []

    with lease(files, this_holder(LONG), waits.append) as held:
        assert len(waits) == 1
        process.send_signal(signal.SIGCONT)
        process.communicate("")
        held.renew()
        assert held.lost is None


def test_a_silent_run_elsewhere_is_taken_over(files: LocalLeaseFiles) -> None:
    """A run on another machine is taken over when its files stay the same for long enough."""
    files.create(holder_name(1), foreign_holder(SHORT).text)
    waits: list[str] = []

    with lease(files, this_holder(LONG), waits.append):
        assert waits == ["waiting at most 0 s to see whether process 7 on etl-7 is still active"]


def test_one_of_many_runs_gets_the_lease(files: LocalLeaseFiles) -> None:
    """Of many runs that start at the same time, one gets the query."""
    runs = 8
    barrier = threading.Barrier(runs)

    def try_lease(stack: ExitStack) -> bool:
        barrier.wait()
        try:
            stack.enter_context(lease(files, this_holder(LIVELY), lambda _: None))
        except LockedError:
            return False
        return True

    with ExitStack() as stack, ThreadPoolExecutor(runs) as pool:
        results = list(pool.map(try_lease, [stack] * runs))

    assert results.count(True) == 1


def lost_after(held: HeldLock, cause: Callable[[], object]) -> str | None:
    """Returns why the lease is lost after `cause`, once it has stopped its query."""
    stopped = threading.Event()
    held.when_lost(stopped.set)
    cause()
    assert stopped.wait(WAIT_SECONDS)
    with pytest.raises(LockLostError):
        held.confirm()
    return held.lost


def test_a_run_notices_that_it_was_taken_over(files: LocalLeaseFiles) -> None:
    """A run with a lower token stops its query, and names the run that has taken over. It gives nothing back."""
    with lease(files, this_holder(SHORT), never) as held:
        why = lost_after(held, lambda: files.create(holder_name(99), foreign_holder(SHORT).text))

    assert why == "process 7 on etl-7 has taken over"
    assert [name for name in files.names() if name.endswith("released")] == []


def test_a_run_without_storage_stops_its_query(tmp_path: Path) -> None:
    """A run that cannot renew its lease stops its query, because others may take over."""
    files = BrokenFiles(str(tmp_path))
    with lease(files, this_holder(SHORT), never) as held:
        why = lost_after(held, lambda: setattr(files, "is_broken", True))

    assert why == "its lock could not be renewed: [Errno 5] the storage does not respond"


def test_a_query_that_starts_after_the_loss_is_stopped(files: LocalLeaseFiles) -> None:
    """A query is stopped even if it started after its lease was lost."""
    with lease(files, this_holder(LONG), never) as held:
        files.create(holder_name(2), foreign_holder(LONG).text)
        held.renew()
        assert lost_after(held, lambda: None) == "process 7 on etl-7 has taken over"


def test_a_run_that_stalled_takes_the_next_token(files: LocalLeaseFiles) -> None:
    """A run that did not run for long keeps its query with a new token, which shuts out a run that wanted to take over."""
    holder = this_holder(LONG)
    files.create(holder_name(1), holder.text)
    held = Lease(files, holder, 1, renewed=-(PERIODS_TO_LIVE + 1) * LONG)

    held.confirm()

    assert {token_of(name) for name in files.names()} == {2}
    assert files.create(holder_name(2), foreign_holder(LONG).text) is False
    held.release()
    assert released_name(2) in files.names()


def test_a_run_that_stalled_has_lost_if_another_one_was_faster(files: LocalLeaseFiles) -> None:
    """Before a batch, a run that did not run for long finds that another run has taken over."""
    holder = this_holder(LONG)
    files.create(holder_name(1), holder.text)
    files.create(holder_name(2), foreign_holder(LONG).text)

    with pytest.raises(LockLostError, match="process 7 on etl-7 has taken over"):
        Lease(files, holder, 1, renewed=-(PERIODS_TO_LIVE + 1) * LONG).confirm()


def test_a_local_folder_without_file_locks_has_a_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a local file system without locks, such as some network file systems, a lease replaces the file lock."""

    def no_locks(descriptor: int, *, blocking: bool) -> bool:
        raise OSError(errno.ENOLCK, f"no locks for {descriptor}, {blocking}")

    monkeypatch.setattr(locks, "lock_descriptor", no_locks)
    files = LocalLeaseFiles(str(tmp_path / "query.lease"))

    with folder_lock(LocalStorage(), str(tmp_path / "query"), never):
        assert set(files.names()) == {holder_name(1)}

    assert released_name(1) in files.names()


def test_a_watch_takes_nothing_and_takes_over_at_once(files: LocalLeaseFiles) -> None:
    """A run that has watched a silent lease for long enough does not wait a second time. Until then it takes nothing."""
    files.create(holder_name(1), foreign_holder(SHORT).text)
    watch, looks = LeaseWatch(), list[Availability]()
    while not looks or looks[-1] is not Availability.FREE:
        looks.append(watch.look(files).availability)
        assert files.names() == (holder_name(1),)

    assert set(looks[:-1]) == {Availability.UNKNOWN}
    with lease(files, this_holder(LONG), never, watch=watch):
        assert newest_token(files.names()) == 2


def test_one_of_two_watches_takes_over(files: LocalLeaseFiles) -> None:
    """The run that is slower is refused at once, with the name of the other one."""
    files.create(holder_name(1), foreign_holder(LONG).text)
    files.create(released_name(1))
    watches = [LeaseWatch(), LeaseWatch()]
    for watch in watches:
        assert watch.look(files).availability is Availability.FREE

    with lease(files, this_holder(LONG), never, watch=watches[0]) as held:
        watch = LeaseWatch()
        assert watch.look(files).name.startswith(f"process {os.getpid()} on ")
        held.renew()
        assert watch.look(files).availability is Availability.HELD
        with pytest.raises(LockedError), lease(files, this_holder(LONG), never, watch=watch):
            pass


def test_signs_of_life_begin_a_new_wait(files: LocalLeaseFiles) -> None:
    """A watch that has seen a sign of life waits for the next one, however long it has watched before."""
    files.create(holder_name(1), foreign_holder(LONG).text)
    watch = LeaseWatch()
    assert watch.look(files).availability is Availability.UNKNOWN
    files.create(beat_name(1, 1))
    assert watch.look(files).availability is Availability.HELD
    watch.start_again()
    assert watch.look(files).availability is Availability.UNKNOWN
    files.create(released_name(1))
    assert watch.look(files).availability is Availability.FREE
