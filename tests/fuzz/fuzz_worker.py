"""A process that goes through fuzzed projects one by one, and that the operating system ends where one takes too much.

Prints a line of JSON when a project is begun and one when it is done. The processor time is limited by a timer whose
signal ends the process, wherever it is: also within a library's own code.
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

from fuzz_cases import make_case
from fuzz_check import Outcome, check_project
from peak_memory import peak_megabytes

SECONDS = 5.0
"""Processor time that one project may take."""

MEGABYTES = 500.0
"""Memory that the process may have at its peak."""

WALL_SECONDS = 120
"""Time by the clock after which a project that does nothing at all counts as hanging."""

STDERR = 2
"""The descriptor that stays open when sys.stderr is replaced: where a process that is ended says what it was doing."""

ADDRESS_SPACE = 4 << 30
"""Bytes: what takes more than this fails with a MemoryError and does not take the machine down."""


@dataclass(frozen=True)
class Done:
    """One project's outcome. `faults` are what broke; `seconds` are of processor time, `megabytes` the peak so far."""

    seed: int
    kind: str
    case: str
    result: str
    codes: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float
    megabytes: float


def work(seeds: Iterable[int], check: Callable[[int], Done], seconds: float = SECONDS) -> None:
    """Checks the project of each seed and prints what came of it."""
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
            return  # the peak never goes down again: the next project gets a process of its own


def check_seed(seed: int) -> Done:
    """Makes the project of `seed` in a new folder and checks it."""
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
    return Done(seed, case.kind, str(case), outcome.result, tuple(sorted(outcome.codes)), faults, seconds, peak)


def _where(error: BaseException) -> str:
    """An exception on one line: its kind, the last lines of ours that it went through, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "sqlstream" in frame.filename]
    places = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:])
    return f"{type(error).__name__} at {places}: {str(error)[:200]}"


def main() -> None:
    """Goes through the seeds of the arguments `first`, `stop` and `step`."""
    first, stop, step = map(int, sys.argv[1:])
    with contextlib.redirect_stderr(open(os.devnull, "w", encoding="utf-8")):  # noqa: PTH123 - what templates log
        work(range(first, stop, step), check_seed)


if __name__ == "__main__":
    main()
