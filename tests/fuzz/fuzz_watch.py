"""Checks many fuzzed projects in worker processes, and returns the result of each, even if its process crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.fuzz.fuzz_cases import make_case
from tests.fuzz.fuzz_worker import SECONDS, WALL_SECONDS, FuzzResult

SHARE = 500
"""The number of projects per process. It is limited so that memory which stays in use does not add up."""

ENDS = {
    signal.SIGPROF: f"more than {SECONDS:g} s of processor time",
    signal.SIGALRM: f"nothing after {WALL_SECONDS} s",
    signal.SIGSEGV: "a crash of the process",
}
"""The meaning of signals that end a worker."""


def fuzz(first: int, count: int, workers: int) -> Iterator[FuzzResult]:
    """Yields the results of `count` seeds from `first` on, in the order in which they finish."""
    queue: SimpleQueue[FuzzResult] = SimpleQueue()
    shares = [range(start, min(start + SHARE, first + count)) for start in range(first, first + count, SHARE)]

    def check(share: range) -> None:
        for done in watch_share(share):
            queue.put(done)

    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(check, share) for share in shares]
        for _ in range(count):
            yield queue.get()
        for task in tasks:
            task.result()


def watch_share(share: range) -> Iterator[FuzzResult]:
    """Yields the results of some seeds. Starts a new process after each project that ended its process."""
    start = share.start
    while start < share.stop:
        command = [sys.executable, str(Path(__file__).parent / "fuzz_worker.py"), str(start), str(share.stop), "1"]
        for done in watch(command):
            start = done.seed + 1
            yield done


def watch(command: Sequence[str]) -> Iterator[FuzzResult]:
    """Yields the results that a worker prints, and that of a project which ended it. Raises: RuntimeError."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    running: int | None = None
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        for found in map(json.loads, process.stdout or ()):
            running = found["seed"] if len(found) == 1 else None
            yield from [FuzzResult(**found)] if running is None else []
        process.wait()
        errors.seek(0)
        stack = errors.read()
    if running is not None:
        yield _result_of_crash(running, process.returncode, stack)
    elif process.returncode != 0:
        raise RuntimeError(f"the worker ended with {process.returncode}: {stack}")


def _result_of_crash(seed: int, code: int, stack: str) -> FuzzResult:
    reason = ENDS.get(signal.Signals(-code), f"signal {-code}") if code < 0 else f"exit code {code}"
    places = [line.strip() for line in stack.splitlines() if "sqlstream" in line]
    case = make_case(seed)
    where = f" at {' < '.join(places[:3])}" if places else ""
    return FuzzResult(seed, case.kind, str(case), "broke", (), (reason + where,), SECONDS, 0.0)
