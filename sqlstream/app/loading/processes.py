"""Jobs done at the same time, each in a process that is a copy of this one."""

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
"""An index of a job, read and written as a whole; a pipe takes 64 KiB before anybody reads."""


class Processes:
    """Runs jobs in forked processes and in this one. `count` is the number of cores to be used."""

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Gives what each job gave, those aside that failed, in no order; ends all processes when it is left early.

        The first job is this process's own; whoever is ready takes the next. What a job gives is made of Python's plain
        values: of texts, numbers, tuples, lists and dicts.
        """
        with _frozen(), _Queue(len(jobs)) as queue, ExitStack() as running:
            others = [running.enter_context(_Process(jobs, queue)) for _ in jobs[1 : self.count]]
            yield from _done(jobs, chain([0], queue))
            for process in others:
                yield from process.results()

    @contextmanager
    def beside(self, job: Callable[[], T]) -> Iterator[Callable[[], T | None]]:
        """Runs `job` in another process while the body runs in this one; gives what waits for its result, which is None
        where it failed. The process ends with the body at the latest.
        """
        with _frozen(), _Process([job], [0]) as process:
            yield lambda: next(process.results(), None)


@contextmanager
def _frozen() -> Iterator[None]:
    """What is there now stays: looking for garbage in it would give each process a copy of its own."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Process:
    """A copy of this process, which does those of `jobs` whose `indexes` it gets and then ends."""

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
        """Ends it, whatever it does."""
        os.close(self._pipe)
        os.kill(self._id, signal.SIGKILL)  # one that has ended stays until it is waited for, and notices nothing
        os.waitpid(self._id, 0)

    def results(self) -> Iterator[Any]:
        """Gives, once, what the jobs gave that did not fail; waits until all are done."""
        with open(self._pipe, "rb", closefd=False) as stream:
            content = stream.read()
        with suppress(ValueError, EOFError):  # nothing, or not all, comes from a process that failed
            yield from marshal.loads(content)  # noqa: S302 - it is this very program that has written it


class _Queue:
    """The indexes of jobs but the first, each of which one of several processes gets: a pipe that is filled before."""

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
    """What the jobs gave that did not fail."""
    for index in indexes:
        try:
            done = jobs[index]()
        except Exception:  # noqa: S112 - what it was to do is done by the caller, who then sees what is wrong
            continue
        yield done


def processes() -> Processes | None:
    """Returns what runs jobs on all cores, None where there is one core, or where a copy of this process is not safe:
    with threads, whose locks the copy would have without the threads that free them, and on other systems than Linux.
    """
    if sys.platform != "linux" or len(list(Path("/proc/self/task").iterdir())) > 1:
        return None
    cores = len(os.sched_getaffinity(0))
    return Processes(cores) if cores > 1 else None


def _carry_out(jobs: Sequence[Callable[[], Any]], indexes: Iterable[int], writing: int) -> NoReturn:
    """Writes the results of jobs and ends the process, without anything that Python does at its end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        content = marshal.dumps(list(_done(jobs, indexes)))
        with open(writing, "wb") as stream:
            stream.write(content)
    finally:
        os._exit(0)
