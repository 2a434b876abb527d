"""Jobs done at the same time, each in a process that is a copy of this one."""

from __future__ import annotations

import gc
import marshal
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class Processes:
    """Runs jobs in forked processes and the first of them in this one. `count` is the number of cores to be used."""

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Gives what each job gave, those aside that failed; ends all processes when it is left early.

        What a job gives is made of Python's plain values: of texts, numbers, tuples, lists and dicts.
        """
        running: list[tuple[int, int]] = []
        gc.freeze()  # what is there now stays: looking for garbage in it would give each process a copy of its own
        try:
            running.extend(map(_start, jobs[1:]))
            yield jobs[0]()
            while running:
                process, pipe = running[0]
                with open(pipe, "rb", closefd=False) as stream:
                    content = stream.read()
                os.close(pipe)
                running.pop(0)
                os.waitpid(process, 0)
                yield from _read(content)
        finally:
            gc.unfreeze()
            for process, pipe in running:
                os.close(pipe)
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def processes() -> Processes | None:
    """Returns what runs jobs on all cores, None where there is one core, or where a copy of this process is not safe:
    with threads, whose locks the copy would have without the threads that free them, and on other systems than Linux.
    """
    if sys.platform != "linux" or len(list(Path("/proc/self/task").iterdir())) > 1:
        return None
    cores = len(os.sched_getaffinity(0))
    return Processes(cores) if cores > 1 else None


def _start(job: Callable[[], Any]) -> tuple[int, int]:
    """Starts a process; returns its id and the descriptor from which its result can be read."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        _carry_out(job, writing)
    os.close(writing)
    return process, reading


def _carry_out(job: Callable[[], Any], writing: int) -> NoReturn:
    """Writes the result of `job` and ends the process, without anything that Python does at its end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        content = marshal.dumps(job())
        with open(writing, "wb") as stream:
            stream.write(content)
    finally:
        os._exit(0)


def _read(content: bytes) -> Iterator[Any]:
    with suppress(ValueError, EOFError):  # nothing, or not all, comes from a process that failed
        yield marshal.loads(content)  # noqa: S302 - it is this very program that has written it
