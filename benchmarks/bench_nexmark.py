"""`make bench-nexmark`: compares Nexmark's queries with the same queries in plain PySpark.

    check       each query's rows beside those of a batch run of the same SQL over the same files
    throughput  events per second from Parquet files into nothing; with the most cores also of the script with Spark's
                own settings, once
    latency     from Kafka to Kafka: ms from the time when the broker has an event to the time when it has its row, in
                micro-batches, and in real-time mode where Spark can run the query

Both sides run as commands, in turns, with the same settings and the same SQL. Throughput is the median of the runs. The
times of batches are those that Spark reports (triggerExecution), without the first ones of a query, in which the JVM
warms up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.bench_connectors import connector_jars
from benchmarks.bench_run import ROOT, command, run, settings
from benchmarks.nexmark.feed import feed, latencies, messages, wait_for_rows, wait_for_rows_since, wait_until_idle
from benchmarks.nexmark.generator import RATE, write_events, write_side_input
from benchmarks.nexmark.queries import Query, copy_project, differences, queries_of, schema_of
from benchmarks.runs.measured import batches_of_run, batches_of_script
from sqlstream.spark.jvm.launch import JARS
from sqlstream.spark.jvm.session import LONG_RUN_JVM
from tests.services.kafka_broker import start_kafka
from tests.services.kafka_topics import create_topic

PARTS = ("check", "throughput", "latency")
SCRIPT = ROOT / "benchmarks/nexmark/script.py"
SEED = 1

CHECKED_EVENTS, CHECKED_RATE = 60_000, 1_000
"""A minute of events, so that each kind of window closes several times."""

FILES_IN_BATCH = 2
BATCHES, WARM_UP = 10, 2
CHECKED_BATCHES, STOCK_BATCHES = 3, 4
"""Fewer with Spark's own settings, with which a batch with state takes many seconds."""

STATELESS = ("q0", "q1", "q2", "q14", "q21", "q22")
IN_MICRO_BATCHES = (*STATELESS, "q18")
TRIGGERS: dict[str, tuple[Sequence[str], str, dict[str, str]]] = {
    "micro-batch": (IN_MICRO_BATCHES, "{+trigger: default}", {"processingTime": "0 seconds"}),
    "real-time": (STATELESS, "{+trigger: {real_time: 5 minutes}, +output_mode: update}", {"realTime": "5 minutes"}),
}
"""For each kind of trigger: the queries, the defaults of the project's models, and the trigger of the script."""

ALSO_STOCK = ("q0", "q18")
"""The queries whose latency is also measured with Spark's own settings."""

START_SECONDS, SETTLE_SECONDS = 180, 30
"""The longest time until the first row, and how long the JVM compiles its code after that."""
GOAL = 0.97


@dataclass(frozen=True)
class Bench:
    """What is measured, and the folder for events and runs."""

    folder: Path
    queries: Sequence[str]
    events: int
    runs: int
    rate: int
    seconds: int
    rounds: int

    @cached_property
    def compiled(self) -> dict[str, Query]:
        """The queries, in their order. Also says whether the project compiles."""
        found = {query.name: query for query in queries_of(self.project)}
        return {name: found[name] for name in self.queries or sorted(found, key=lambda name: int(name[1:]))}

    @cached_property
    def project(self) -> Path:
        """A compiled copy of the project."""
        project = copy_project(self.folder / "project")
        run(command("compile"), project)
        return project

    def data(self, events: int, batches: int, rate: int = RATE) -> Path:
        """Returns a folder with events, which a query reads in `batches` batches and a last one, and the side input."""
        data = self.new_folder()
        write_events(data / "events", events, batches * FILES_IN_BATCH, SEED, rate)
        write_side_input(data / "side_input")
        return data

    def new_folder(self) -> Path:
        """Returns the path of a new folder."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / "run"

    def variables(self, data: Path, **more: object) -> list[str]:
        """Returns the options with the variables of a run over the events in `data`."""
        given = {"events": f"{data}/events", "side_input": f"{data}/side_input", **more}
        return ["--vars", json.dumps(given)]

    def given(self, names: Sequence[str], out: Path, data: Path, given: Mapping[str, object], **changed: str) -> str:
        """Returns what the script gets: the queries, with `changed` fields, and `given`."""
        queries = [{**self.compiled[name].as_json(), **changed} for name in names]
        places = {"out": str(out), "side_input": f"{data}/side_input"}
        return json.dumps({"queries": queries, "schema": schema_of(self.project), **places, **given})


def main() -> None:
    """Measures the given parts and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--queries", nargs="+", default=[], help="such as q0 q5 (default: all)")
    parser.add_argument("--cores", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--events", type=int, default=600_000, help="events of the throughput")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side for the throughput")
    parser.add_argument("--rate", type=int, default=2_000, help="events per second for the latency")
    parser.add_argument("--seconds", type=int, default=10, help="how long to measure a latency")
    parser.add_argument("--rounds", type=int, default=1, help="measurements of each latency")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-nexmark-") as folder:
        numbers = (given.events, given.runs, given.rate, given.seconds, given.rounds)
        bench = Bench(Path(folder), given.queries, *numbers)
        for part in given.part:
            if part == "check":
                check(bench)
            else:
                {"throughput": throughput, "latency": latency}[part](bench, given.cores)


def check(bench: Bench) -> None:
    """Prints whether the rows of each query are those of a batch run. Raises: SystemExit if they are not."""
    data, project = bench.data(CHECKED_EVENTS, CHECKED_BATCHES, CHECKED_RATE), copy_project(bench.new_folder())
    variables = bench.variables(data, rows=str(project / "rows"))
    run(command("run", *variables, "--select", *bench.compiled), project)
    builder = SparkSession.builder
    for name, value in settings("local[2]").items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    found = differences(session, project, data, list(bench.compiled))
    session.stop()
    for name in bench.compiled:
        rows, more, fewer = found[name]
        print(f"{name:4} {rows:8,} rows, as a batch run" if not more + fewer else f"{name:4} DIFFERS", flush=True)
    if any(more + fewer for _, more, fewer in found.values()):
        raise SystemExit("some rows differ from a batch run")


def throughput(bench: Bench, cores: Sequence[int]) -> None:
    """Prints the events per second of each query on each number of cores."""
    data = bench.data(bench.events, BATCHES)
    first = bench.folder / "first"
    shutil.copytree(data / "side_input", first / "side_input")
    (first / "events").mkdir()
    for path in sorted((data / "events").iterdir())[: STOCK_BATCHES * FILES_IN_BATCH]:
        shutil.copy2(path, first / "events")
    for count in cores:
        ours, theirs = [], []
        for _ in range(bench.runs):
            batches = by_sqlstream(bench, data, count)
            ours.append(speeds(bench, batches, BATCHES))
            theirs.append(speeds(bench, by_script(bench, data, settings(f"local[{count}]"), list(batches)), BATCHES))
        stock: Mapping[str, float] = {}
        if count == max(cores):
            given = {"spark.master": f"local[{count}]"}
            stock = speeds(bench, by_script(bench, first, given, list(ours[-1])), STOCK_BATCHES)
        print(f"\nevents per second, {bench.events:,} events, {count} core(s), median of {bench.runs}")
        print("     sqlstream  per core    script     ratio" + ("  stock script" if stock else ""))
        for name in bench.compiled:
            one, other = (statistics.median(each[name] for each in side) for side in (ours, theirs))
            goal = "" if one / other >= GOAL else f"below {GOAL}"
            speed = f"{one:9,.0f} {one / count:9,.0f} {other:9,.0f} {one / other:9.2f}"
            print(f"{name:4} {speed}" + (f" {stock[name]:9,.0f}" if stock else "") + f"  {goal}")
        sys.stdout.flush()


def speeds(bench: Bench, batches: Mapping[str, Sequence[float]], count: int) -> dict[str, float]:
    """Returns the events per second of each query, in its batches from the warm-up to the batch `count`."""
    in_batch = bench.events // BATCHES
    return {name: in_batch / statistics.mean(each[WARM_UP:count]) * 1000 for name, each in batches.items()}


def by_sqlstream(bench: Bench, data: Path, cores: int) -> dict[str, list[float]]:
    """Returns the batches of a run."""
    project = copy_project(bench.new_folder())
    variables = bench.variables(data, cores=cores)
    run(command("run", "--target", "throughput", *variables, "--select", *bench.compiled), project)
    return batches_of_run(project)


def by_script(bench: Bench, data: Path, given: Mapping[str, str], names: Sequence[str]) -> dict[str, list[float]]:
    """Returns the batches of the script with the settings `given`. It runs the queries in the order of `names`, which
    must be that of the run: a JVM is the faster the longer it has run.
    """
    source = {"format": "parquet", "options": {"path": f"{data}/events", "maxFilesPerTrigger": FILES_IN_BATCH}}
    sink = {"format": "noop", "options": {}}
    more = {"settings": given, "source": source, "sink": sink, "trigger": {"availableNow": True}}
    arguments = bench.given(names, bench.new_folder(), data, more)
    return batches_of_script(run([sys.executable, str(SCRIPT), arguments], bench.folder))


@dataclass(frozen=True)
class LatencyCase:
    """A query with a trigger on a number of cores, and the broker with the events to send."""

    servers: str
    sent: Sequence[bytes]
    query: str
    trigger: str
    cores: int


def latency(bench: Bench, cores: Sequence[int]) -> None:
    """Prints the latency of each query of `TRIGGERS` on each number of cores."""
    if not set(IN_MICRO_BATCHES) & set(bench.compiled):
        return
    data = bench.folder / "latency"
    write_side_input(data / "side_input")
    sent = messages((START_SECONDS + SETTLE_SECONDS + bench.seconds) * bench.rate, SEED, bench.rate)
    broker = start_kafka(bench.folder / "kafka")
    try:
        cases = [
            LatencyCase(broker.servers, sent, query, trigger, count)
            for count in cores
            for trigger, (queries, _, _) in TRIGGERS.items()
            for query in queries
            if query in bench.compiled
        ]
        measure(bench, cases[0], data, script_command)  # the broker is still warming up
        print(f"\nms from event to row, Kafka to Kafka, {bench.rate:,} events per second, {bench.rounds} round(s)")
        for case in cases:
            report_latency(bench, case, data)
    finally:
        broker.stop()


def report_latency(bench: Bench, case: LatencyCase, data: Path) -> None:
    """Measures each side in turns, and prints the medians of the rounds: p50 and p99 of each side."""
    sides: dict[str, Start] = {"sqlstream": sqlstream_command, "script": script_command}
    if case.query in ALSO_STOCK:
        sides["stock script"] = stock_script_command
    found: dict[str, list[Sequence[float]]] = {name: [] for name in sides}
    for _ in range(bench.rounds):
        for name, start in sides.items():
            found[name].append(statistics.quantiles(measure(bench, case, data, start), n=100))
    columns = [f"{case.cores} core(s)  {case.trigger:11}  {case.query:4}"]
    for name, rounds in found.items():
        p50, p99 = (statistics.median(each[number - 1] for each in rounds) for number in (50, 99))
        columns.append(f"{name} p50 {p50:5,.0f} p99 {p99:6,.0f}")
    print("   ".join(columns), flush=True)


Start = Callable[[Bench, LatencyCase, Path, tuple[str, str]], list[str]]
"""Returns the command line of a side."""


def measure(bench: Bench, case: LatencyCase, data: Path, start: Start) -> list[int]:
    """Returns the latencies in ms of the events of `bench.seconds`, once the query is warm."""
    number = len(list(bench.folder.iterdir()))
    topics = (f"events-{number}", f"rows-{number}")
    for topic in topics:
        # real-time mode runs all tasks at once
        create_topic(case.servers, topic, case.cores, **{"message.timestamp.type": "LogAppendTime"})
    with running(start(bench, case, data, topics), bench.folder) as process:
        with feed(case.servers, topics[0], case.sent, bench.rate):
            until = time.monotonic() + START_SECONDS
            wait_for_rows(case.servers, topics[1], lambda: check_process(process, bench.folder, until))
            time.sleep(SETTLE_SECONDS)
            began = time.time()
            time.sleep(bench.seconds)
            ended = time.time()
            # a batch of a slow query can take longer than the measurement
            wait_for_rows_since(case.servers, topics, ended, lambda: check_process(process, bench.folder, until))
        wait_until_idle(case.servers, topics[1])
    return latencies(case.servers, topics, began, ended)


def sqlstream_command(bench: Bench, case: LatencyCase, data: Path, topics: tuple[str, str]) -> list[str]:
    """Returns the command line of a run."""
    _, models, _ = TRIGGERS[case.trigger]
    project = copy_project(bench.new_folder(), f"models: {models}", case.query)
    names = {"kafka": case.servers, "events_topic": topics[0], "rows_topic": topics[1]}
    variables = bench.variables(data, cores=case.cores, **names)
    return command("run", "--project-dir", str(project), "--target", "latency", *variables)


def script_command(bench: Bench, case: LatencyCase, data: Path, topics: tuple[str, str]) -> list[str]:
    """Returns the command line of the script with the settings of a run."""
    return script_arguments(bench, case, data, topics, settings(f"local[{case.cores}]", LONG_RUN_JVM))


def stock_script_command(bench: Bench, case: LatencyCase, data: Path, topics: tuple[str, str]) -> list[str]:
    """Returns the command line of the script with Spark's own settings."""
    return script_arguments(bench, case, data, topics, {"spark.master": f"local[{case.cores}]"})


def script_arguments(
    bench: Bench, case: LatencyCase, data: Path, topics: tuple[str, str], given: Mapping[str, str]
) -> list[str]:
    """Returns the command line of the script from Kafka to Kafka."""
    _, models, trigger = TRIGGERS[case.trigger]
    server = {"kafka.bootstrap.servers": case.servers}
    more: dict[str, object] = {
        "settings": {**given, JARS: connector_jars("kafka")},
        "source": {"format": "kafka", "options": {**server, "subscribe": topics[0], "startingOffsets": "earliest"}},
        "sink": {"format": "kafka", "options": {**server, "topic": topics[1]}},
        "trigger": trigger,
    }
    mode = {"output_mode": "update"} if "update" in models else {}
    return [sys.executable, str(SCRIPT), bench.given([case.query], bench.new_folder(), data, more, **mode)]


@contextmanager
def running(arguments: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command until the end of the context."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(arguments, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def check_process(process: subprocess.Popen[bytes], folder: Path, until: float) -> None:
    """Raises: SystemExit if a command has ended, or a time of the monotonic clock has passed."""
    if process.poll() is not None or time.monotonic() > until:
        raise SystemExit(f"there are no rows:\n{(folder / 'log').read_text()[-3000:]}")


if __name__ == "__main__":
    main()
