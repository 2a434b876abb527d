"""Goes through many fuzzed projects in worker processes, and says of each what came of it, however its process ended."""

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

from fuzz_cases import make_case
from fuzz_worker import SECONDS, WALL_SECONDS, Done

SHARE = 500
"""Projects that one process goes through: memory that stays in use is not counted against later ones for long."""

ENDS = {
    signal.SIGPROF: f"more than {SECONDS:g} s of processor time",
    signal.SIGALRM: f"nothing after {WALL_SECONDS} s",
    signal.SIGSEGV: "a crash of the process",
}
"""What the signals mean that end a worker."""


def fuzz(first: int, count: int, workers: int) -> Iterator[Done]:
    """Gives the outcome of each of `count` seeds from `first` on, in the order in which they are done."""
    queue: SimpleQueue[Done] = SimpleQueue()
    shares = [range(start, min(start + SHARE, first + count)) for start in range(first, first + count, SHARE)]

    def through(share: range) -> None:
        for done in watch_share(share):
            queue.put(done)

    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(through, share) for share in shares]
        for _ in range(count):
            yield queue.get()
        for task in tasks:
            task.result()


def watch_share(share: range) -> Iterator[Done]:
    """Gives the outcomes of some seeds, with a new process after each project that ended the one before."""
    start = share.start
    while start < share.stop:
        command = [sys.executable, str(Path(__file__).parent / "fuzz_worker.py"), str(start), str(share.stop), "1"]
        for done in watch(command):
            start = done.seed + 1
            yield done


def watch(command: Sequence[str]) -> Iterator[Done]:
    """Gives the outcomes that a worker prints, and that of the project which ended it. Raises: RuntimeError."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    begun: int | None = None
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                found = json.loads(line)
                begun = found["seed"] if len(found) == 1 else None
                if begun is None:
                    yield Done(**found)
        errors.seek(0)
        stack = errors.read()
    if begun is not None:
        yield _ended(begun, process.returncode, stack)
    elif process.returncode != 0:
        raise RuntimeError(f"the worker ended with {process.returncode}: {stack}")


def _ended(seed: int, code: int, stack: str) -> Done:
    reason = ENDS.get(signal.Signals(-code), f"signal {-code}") if code < 0 else f"exit code {code}"
    places = [line.strip() for line in stack.splitlines() if "sqlstream" in line]
    case = make_case(seed)
    where = f" at {' < '.join(places[:3])}" if places else ""
    return Done(seed, case.kind, str(case), "broke", (), (reason + where,), SECONDS, 0.0)
