"""Runs jobs in parallel, in forked processes."""

from __future__ import annotations

import gc
import marshal
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from struct import Struct
from typing import Any, NoReturn, Self, TypeVar

T = TypeVar("T")

_INDEX = Struct("H")
"""The index of a job, read and written atomically. A pipe buffers 64 KiB before anyone reads."""


class Processes:
    """Runs jobs in forked processes and in this one. `count` is the number of cores to use."""

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yields the results of the jobs that did not fail, in no order. Ends all processes if the caller stops early.

        This process runs the first job; a process that is free takes the next one. Results are plain Python values:
        texts, numbers, tuples, lists and dicts.
        """
        with _frozen(), _Queue(len(jobs)) as queue, ExitStack() as running:
            others = [running.enter_context(_Process(jobs, queue)) for _ in jobs[1 : self.count]]
            yield from _done(jobs, chain([0], queue))
            for process in others:
                yield from process.results()

    @contextmanager
    def beside(self, job: Callable[[], T]) -> Iterator[Callable[[], T | None]]:
        """Runs `job` in another process during the body. Yields a function that waits for its result, None if the job
        failed. The process ends with the body at the latest.
        """
        with _frozen(), _Process([job], [0]) as process:
            yield lambda: next(process.results(), None)


@contextmanager
def _frozen() -> Iterator[None]:
    """Excludes present objects from garbage collection, which would copy their memory into each process."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Process:
    """A copy of this process, which runs the jobs at `indexes` and then ends."""

    def __init__(self, jobs: Sequence[Callable[[], Any]], indexes: Iterable[int]) -> None:
        self._pipe, writing = os.pipe()
        self._id = os.fork()
        if not self._id:
            os.close(self._pipe)
            _carry_out(jobs, indexes, writing)
        os.close(writing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kills the process, even if its jobs are not done."""
        os.close(self._pipe)
        os.kill(self._id, signal.SIGKILL)  # harmless if the process has ended: it stays a zombie until waitpid
        os.waitpid(self._id, 0)

    def results(self) -> Iterator[Any]:
        """Yields, once, the results of the jobs that did not fail. Waits until all are done."""
        with open(self._pipe, "rb", closefd=False) as stream:
            content = stream.read()
        with suppress(ValueError, EOFError):  # a process that failed writes nothing, or only a part
            yield from marshal.loads(content)  # noqa: S302 - this program has written it


class _Queue:
    """The indexes of all jobs but the first, in a pipe that several processes read. Each index goes to one process."""

    def __init__(self, count: int) -> None:
        self._reading, writing = os.pipe()
        with open(writing, "wb") as stream:  # noqa: PTH123 - a descriptor
            stream.write(b"".join(_INDEX.pack(index) for index in range(1, count)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reading)

    def __iter__(self) -> Iterator[int]:
        while index := os.read(self._reading, _INDEX.size):
            yield from _INDEX.unpack(index)


def _done(jobs: Sequence[Callable[[], T]], indexes: Iterable[int]) -> Iterator[T]:
    """Yields the results of the jobs that did not fail."""
    for index in indexes:
        try:
            done = jobs[index]()
        except Exception:  # noqa: S112 - the caller does the work of a failed job itself, and sees the error
            continue
        yield done


def processes() -> Processes | None:
    """Returns processes for all cores. Returns None if there is one core, or if forking is not safe: in a process with
    threads, whose locks nobody would release in the copy, and on systems other than Linux.
    """
    if sys.platform != "linux" or len(list(Path("/proc/self/task").iterdir())) > 1:
        return None
    cores = len(os.sched_getaffinity(0))
    return Processes(cores) if cores > 1 else None


def _carry_out(jobs: Sequence[Callable[[], Any]], indexes: Iterable[int], writing: int) -> NoReturn:
    """Writes the results of jobs and ends the process at once, without Python's exit handlers."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        content = marshal.dumps(list(_done(jobs, indexes)))
        with open(writing, "wb") as stream:
            stream.write(content)
    finally:
        os._exit(0)
