"""`make bench-many`: seconds for plan, start and status of a run with 10, 50 and 200 endless queries, and its memory.

Every fifth query has windows, the others filter. `start` is the time from the start of the process to the end of the
first batch of the last query, `stop` that from SIGTERM to the end of the process. Seconds of the CPU are those of all
processes; they depend less on what else the machine does. Growth is at most linear if four times as many queries take
at most four times as many of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks.runs.data import write_events
from benchmarks.runs.measured import cpu_seconds, resident_memory, thread_count
from benchmarks.runs.projects import write_project

ROOT = Path(__file__).resolve().parent.parent
COUNTS = (10, 50, 200)
FILES, ROWS = 3, 100
STATEFUL_EVERY = 5
TRIGGER = "10 seconds"
SETTLING_SECONDS = 30.0
"""How long all queries run before the memory is measured."""
POLL_SECONDS = 0.2
LIMIT_SECONDS = 1800.0


@dataclass(frozen=True)
class Measured:
    """The seconds of the commands and their seconds of the CPU, the memory in MB, and the threads. `plan_new` is that
    before the first run.
    """

    plan_new: float
    plan_new_cpu: float
    start: float
    start_cpu: float
    status: float
    status_cpu: float
    stop: float
    plan: float
    plan_cpu: float
    memory: float
    threads: float


def main() -> None:
    """Measures each number of queries, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS), help="numbers of queries, ascending")
    counts = parser.parse_args().counts
    found: dict[int, Measured] = {}
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="bench-many-") as folder:
            found[count] = measure(Path(folder), count)
        print(count, found[count], file=sys.stderr, flush=True)
    print_table(found)


def measure(folder: Path, count: int) -> Measured:
    """Returns what a project with `count` queries takes. Raises: SystemExit if a command fails."""
    write_events(folder / "data/events", FILES, ROWS)
    shapes = ("windows", *("flat", "buys", "twice") * STATEFUL_EVERY)[:STATEFUL_EVERY]
    models = {f"m{number:03}": shapes[number % STATEFUL_EVERY] for number in range(count)}
    project = write_project(folder / "project", folder / "data", models, trigger=f"'{TRIGGER}'")
    timed(project, "compile")
    plan_new = timed(project, "plan")
    started = time.perf_counter()
    with subprocess.Popen(command("run"), cwd=project, stdout=subprocess.DEVNULL, env=environment()) as process:
        wait_for_batches(project, process, count)
        start, start_cpu = time.perf_counter() - started, cpu_seconds(process.pid)
        time.sleep(SETTLING_SECONDS)
        memory, threads = resident_memory(process.pid), thread_count(process.pid)
        status = timed(project, "status")
        stopping = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        if process.wait(LIMIT_SECONDS):
            raise SystemExit(f"the run of {count} queries ended with code {process.returncode}")
        stop = time.perf_counter() - stopping
    return Measured(*plan_new, start, start_cpu, *status, stop, *timed(project, "plan"), memory, threads)


def wait_for_batches(project: Path, process: subprocess.Popen[bytes], count: int) -> None:
    """Waits until each query has had a batch. Raises: SystemExit if the run ends before, or takes too long."""
    until = time.monotonic() + LIMIT_SECONDS
    while len(queries_with_batches(project)) < count:
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise SystemExit(f"not all of {count} queries had a batch, see {project}/logs")
        time.sleep(POLL_SECONDS)


def queries_with_batches(project: Path) -> set[str]:
    """Returns the queries that have had a batch, by the journal."""
    files = sorted((project / "logs").glob("events.jsonl*"))
    lines = (line for file in files for line in file.read_text().splitlines() if '"event": "batch"' in line)
    return {json.loads(line)["model"] for line in lines if line.endswith("}")}


def timed(project: Path, name: str) -> tuple[float, float]:
    """Returns the seconds of a command, and its seconds of the CPU. Raises: SystemExit if it fails."""
    started, before = time.perf_counter(), cpu_of_children()
    done = subprocess.run(command(name), cwd=project, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return time.perf_counter() - started, cpu_of_children() - before


def cpu_of_children() -> float:
    """Returns the seconds of the CPU of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(name: str) -> list[str]:
    """Returns the command line of a command of sqlstream."""
    return [sys.executable, "-m", "sqlstream", name]


def environment() -> dict[str, str]:
    """Returns the environment of commands, which find this sqlstream."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def print_table(found: dict[int, Measured]) -> None:
    """Prints one line for each figure, with its growth between the last two numbers of queries."""
    counts: Sequence[int] = sorted(found)
    print(f"{'queries':10}", *(f"{count:>9,}" for count in counts))
    for each in fields(Measured):
        values = [getattr(found[count], each.name) for count in counts]
        unit = {"memory": "MB", "threads": ""}.get(each.name, "s")
        line = " ".join(f"{value:>9,.1f}" for value in values)
        print(f"{each.name:10} {line} {unit:3}{growth(counts, values)}")


def growth(counts: Sequence[int], values: Sequence[float]) -> str:
    """Returns how many times as long the most queries take as the fewer before them, and whether that is linear."""
    if len(counts) < 2:
        return ""
    ratio, most = values[-1] / values[-2], counts[-1] / counts[-2]
    return f"{ratio:.2f} times for {most:g} times as many: {'at most linear' if ratio <= most else 'MORE THAN LINEAR'}"


if __name__ == "__main__":
    main()
