"""`make bench-observers`: the time of batches in a run that is observed, beside the same run without.

Observed means `--ui`, metrics for Prometheus, read every second, rows of metrics in a Parquet folder every minute (the
default), and rules for all kinds of alerts with a webhook. The runs take turns, so that a busy machine
slows down both. Each run has 300 batches of 1,000 rows; its result is the median of their times (Spark's
triggerExecution) without the first fifth. Prints the medians of all runs, and the ratio of the pairs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

from benchmarks.bench_run import FLAT, Bench, command, run, steady_median, verdict
from benchmarks.runs.data import write_events
from benchmarks.runs.measured import batches_of_run
from benchmarks.runs.projects import write_project

GOAL = 1.02
FILES, ROWS = 300, 1_000
SCRAPE_SECONDS = 1.0
METRICS = "metrics: {sink: lake}\n"
ALERTS = """alerts:
  rules:
    failed: true
    no_rows_for: 1 minute
    restarts_over: 0
    lag_over: 1000
    watermark_behind: 1 minute
    late_rows_over: 0
    state_rows_over: 1000
    batch_slower_than_trigger: true
    quarantined_over: 0
  notify: [{name: nobody, webhook: "http://127.0.0.1:9/"}]
"""
"""All rules. Port 9 discards what it gets, or does not listen."""


def main() -> None:
    """Measures both sides in turns and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="number of runs of each side")
    parser.add_argument("--port", type=int, default=19464, help="a free port for the metrics")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-observers-") as folder:
        bench = Bench(Path(folder), given.repeat, 0, Path())
        data = bench.data("batches")
        write_events(data / "events", FILES, ROWS)
        found = bench.alternate(
            {
                "without": lambda folder: without(folder, data),
                "with": lambda folder: observed(folder, data, given.port),
            }
        )
    pairs = [one / other for one, other in zip(found["with"], found["without"], strict=True)]
    for name, times in found.items():
        print(f"{name:8} ms of a batch of {ROWS:,} rows: {', '.join(f'{time:.1f}' for time in times)}")
    medians = {name: statistics.median(times) for name, times in found.items()}
    print(f"medians of {given.repeat}: {verdict(medians['with'] / medians['without'], GOAL)}")
    print(f"median of the ratios of the pairs: {verdict(statistics.median(pairs), GOAL)}")


def without(folder: Path, data: Path) -> float:
    """Returns the time of a batch in a run that nothing observes."""
    project = write_project(folder, data, FLAT)
    run(command("run"), project)
    return steady_median(batches_of_run(project)["flat"])


def observed(folder: Path, data: Path, port: int) -> float:
    """Returns the time of a batch in a run with everything on."""
    project = write_project(folder, data, FLAT)
    (project / "project.yml").open("a").write(METRICS + ALERTS)
    ended = threading.Event()
    reader = threading.Thread(target=read_metrics, args=(port, ended))
    reader.start()
    run(command("run", "--metrics-port", str(port), "--ui", "--ui-port", "0"), project)
    ended.set()
    reader.join()
    return steady_median(batches_of_run(project)["flat"])


def read_metrics(port: int, ended: threading.Event) -> None:
    """Reads the metrics every second, as Prometheus does, until the run has ended."""
    count = 0
    while not ended.wait(SCRAPE_SECONDS):
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            count += bool(answer.read())
    if not count:
        sys.exit("the metrics were never read")


if __name__ == "__main__":
    main()
