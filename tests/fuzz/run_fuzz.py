"""`make fuzz`: compiles mutated projects and prints statistics. Exits with 1 if the compiler breaks on one.

A seed always creates the same project: `make fuzz FIRST=1373 COUNT=1` checks a single one.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sqlstream.codes import CODES
from tests.fuzz.fuzz_cases import make_case
from tests.fuzz.fuzz_watch import fuzz
from tests.fuzz.fuzz_worker import MEGABYTES, SECONDS, FuzzResult

REPRODUCTIONS = Path(__file__).parents[2] / "target" / "fuzz"
RESULTS = ("compiled", "refused", "usage", "broke")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if the compiler broke on a project, otherwise 0. Saves such projects in target/fuzz/."""
    parser = argparse.ArgumentParser(description="Compiles mutated projects and prints the results.")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=10_000, help="number of seeds")
    parser.add_argument("--workers", type=int, default=2, help="number of parallel processes")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    outcomes = []
    for done in fuzz(given.first, given.count, given.workers):
        outcomes.append(done)
        if done.faults:
            print(f"BROKE {done.case}\n  {'; '.join(done.faults)}\n  saved in {_save(done.seed)}", flush=True)
        elif len(outcomes) % 1000 == 0:
            print(f"{len(outcomes):,} done", flush=True)
    last = given.first + given.count - 1
    print(f"\nSeeds {given.first:,} to {last:,}, {time.monotonic() - started:.0f} s with {given.workers} processes\n")
    print(statistics_table(outcomes))
    return 1 if any(done.faults for done in outcomes) else 0


def _save(seed: int) -> Path:
    folder = REPRODUCTIONS / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    make_case(seed).write(folder)
    return folder


def statistics_table(outcomes: Sequence[FuzzResult]) -> str:
    """Returns the statistics as a table, with a row for each kind of mutation and one for all."""
    kinds = sorted({done.kind for done in outcomes})
    lines = [f"{'':8}{'projects':>9}" + "".join(f"{name:>10}" for name in RESULTS) + f"{'slowest':>10}{'peak':>9}"]
    lines += [_row(kind, [done for done in outcomes if done.kind == kind]) for kind in kinds]
    lines.append(_row("all", outcomes))
    codes = {code for done in outcomes for code in done.codes}
    slowest = sorted(outcomes, key=lambda done: done.seconds)[:-4:-1]
    lines += [f"slow: {done.seconds:.2f} s: {done.case}" for done in slowest]
    broken = sum(bool(done.faults) for done in outcomes)
    lines.append(f"\n{len(codes)} of {len(CODES)} codes were found.")
    lines.append(f"{broken:,} broke: a traceback, a malformed finding, over {SECONDS:g} s or over {MEGABYTES:g} MB.")
    return "\n".join(lines)


def _row(name: str, outcomes: Sequence[FuzzResult]) -> str:
    results = Counter("broke" if done.faults else done.result for done in outcomes)
    counts = "".join(f"{results[result]:>10,}" for result in RESULTS)
    slowest, peak = max(done.seconds for done in outcomes), max(done.megabytes for done in outcomes)
    return f"{name:8}{len(outcomes):>9,}{counts}{slowest:>8.2f} s{peak:>6.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
