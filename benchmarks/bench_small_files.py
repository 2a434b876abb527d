"""`make bench-small-files`: 10,000 batches of 50 rows into a sink, with and without `sqlstream maintain`.

The batches are in ten runs. One side has `maintain --merge-files` after each run but the last, the other has not.
Prints what the output has in the end, and how long a batch takes (Spark's triggerExecution, the median of a run without
its first fifth) in the first run and in the last one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench_run import command, run, steady_median
from benchmarks.runs.data import write_events
from benchmarks.runs.measured import batches_of_run
from benchmarks.runs.projects import write_project

RUNS, ROWS = 10, 50
SINKS = {
    "files": '  - {name: small, format: parquet, path: "{{ model.name }}"}\n',
    "database": '  - {name: small, format: sqlite, path: "{{ model.name }}.sqlite"}\n',
    "delta": '  - {name: small, format: delta, path: "{{ model.name }}"}\n',
}


@dataclass(frozen=True)
class Side:
    """What one side measured: the times of a batch in the first and the last run (ms), and the output in the end."""

    first: float
    last: float
    output: str


def main() -> None:
    """Measures both sides of each sink and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinks", nargs="+", choices=list(SINKS), default=["files", "database"])
    parser.add_argument("--batches", type=int, default=10_000, help="number of batches of each side")
    given = parser.parse_args()
    for sink in given.sinks:
        for maintains in (False, True) if sink != "database" else (False,):
            with tempfile.TemporaryDirectory(prefix="bench-small-files-") as folder:
                side = measure(Path(folder), sink, given.batches, maintains=maintains)
            how = "with maintain" if maintains else "without"
            times = f"a batch takes {side.first:.0f} ms at the start, {side.last:.0f} ms at the end"
            print(f"{sink:9} {how:14} {times} ({side.last / side.first:.2f}); {side.output}", flush=True)


def measure(folder: Path, sink: str, batches: int, *, maintains: bool) -> Side:
    """Returns what a query measures that writes `batches` batches to a sink."""
    data = folder / "data"
    write_events(data / "waiting", batches, ROWS)
    (data / "events").mkdir()
    waiting = sorted((data / "waiting").iterdir())
    project = write_project(folder / "project", data, {"flat": "flat"}, sink="small")
    with (project / "sinks.yml").open("a") as sinks:
        sinks.write(SINKS[sink])
    times = []
    for number in range(RUNS):
        for path in waiting[number * batches // RUNS : (number + 1) * batches // RUNS]:
            path.rename(data / "events" / path.name)
        (project / "logs/events.jsonl").unlink(missing_ok=True)
        run(command("run"), project)
        times.append(steady_median(batches_of_run(project)["flat"]))
        if maintains and number < RUNS - 1:
            run(command("maintain", "--merge-files", "--retain", "1 millisecond"), project)
    return Side(times[0], times[-1], described(project, sink))


def described(project: Path, sink: str) -> str:
    """Returns the size of the output."""
    if sink == "database":
        return f"{(project / 'store/flat.sqlite').stat().st_size:,} bytes"
    (found,) = json.loads(run(command("maintain", "--merge-files", "--dry-run", "--output", "json"), project))["sinks"]
    size = found["before"]
    log = f", {size['log_bytes']:,} bytes of log" if size["log_bytes"] is not None else ""
    return f"{size['files']:,} files, {size['bytes']:,} bytes{log}"


if __name__ == "__main__":
    main()
