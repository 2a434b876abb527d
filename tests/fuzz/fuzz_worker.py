"""A process that checks fuzzed projects one by one. The operating system ends it if one takes too much time or memory.

Prints a line of JSON when a project starts and another one when it is done. A timer limits the processor time; its
signal ends the process even inside a library's native code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.fuzz_cases import make_case
from tests.fuzz.fuzz_check import Outcome, check_project
from tests.fuzz.peak_memory import peak_megabytes

SECONDS = 5.0
"""The processor time limit of one project."""

MEGABYTES = 500.0
"""The limit of the process's peak memory."""

WALL_SECONDS = 120
"""The wall time after which a project counts as hanging."""

STDERR = 2
"""The file descriptor for stack traces, which stays open when sys.stderr is replaced."""

ADDRESS_SPACE = 4 << 30
"""The memory limit in bytes. Beyond it, allocation raises a MemoryError."""


@dataclass(frozen=True)
class FuzzResult:
    """The result of one project. `seconds` is processor time, `megabytes` the peak of the process so far."""

    seed: int
    kind: str
    case: str
    result: str
    codes: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float
    megabytes: float


def work(seeds: Iterable[int], check: Callable[[int], FuzzResult], seconds: float = SECONDS) -> None:
    """Checks the project of each seed and prints its result."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(STDERR)
    faulthandler.register(signal.SIGPROF, STDERR, chain=True)
    for seed in seeds:
        print(json.dumps({"seed": seed}), flush=True)
        signal.alarm(WALL_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        done = check(seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(done.__dict__), flush=True)
        if done.megabytes > MEGABYTES:
            return  # the peak never decreases, so the next project needs a new process


def check_seed(seed: int) -> FuzzResult:
    """Creates the project of `seed` in a temporary folder and checks it."""
    case = make_case(seed)
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        case.write(Path(folder))
        started = time.process_time()
        try:
            outcome = check_project(Path(folder))
        except BaseException as error:
            outcome = Outcome("broke", frozenset(), (_where(error),))
        seconds = time.process_time() - started
    peak = peak_megabytes()
    faults = outcome.faults if peak <= MEGABYTES else (*outcome.faults, f"a peak of {peak:.0f} MB")
    return FuzzResult(seed, case.kind, str(case), outcome.result, tuple(sorted(outcome.codes)), faults, seconds, peak)


def _where(error: BaseException) -> str:
    """Returns an exception on one line: its class, its last lines in sqlstream, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "sqlstream" in frame.filename]
    places = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:])
    return f"{type(error).__name__} at {places}: {str(error)[:200]}"


def main() -> None:
    """Checks the seeds given by the arguments `first`, `stop` and `step`."""
    first, stop, step = map(int, sys.argv[1:])
    with contextlib.redirect_stderr(open(os.devnull, "w", encoding="utf-8")):  # noqa: PTH123 - hides messages of templates
        work(range(first, stop, step), check_seed)


if __name__ == "__main__":
    main()
