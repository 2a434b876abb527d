"""`make bench-run`: compares a run with the same queries in plain PySpark, and with Spark Declarative Pipelines.

    a  rows per second of CloudTrail and of a windowed aggregation, and whether Spark's plans are the same
    b  the median time of batches of 1,000 rows
    c  from the start of the process to the end of three queries over little data
    d  twenty queries in one run, and one alone: the time of their batches, and the memory of the run
    e  ten data tests that count, beside the same query without them; and ten with a quarantine, beside a script whose
       foreachBatch filters each batch twice

All run as commands, in turns, so that a busy machine slows down all of them. Results are medians. Times of batches are
those that Spark reports (triggerExecution).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.runs.data import write_cloudtrail, write_events
from benchmarks.runs.measured import Batches, batches_of_run, batches_of_script, measure_memory, plans_of
from benchmarks.runs.projects import STATELESS, TESTED, WINDOWED, tests_of, write_pipeline, write_project
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.class_archive import use_options
from sqlstream.spark.jvm.session import FINITE_RUN_JVM, JVM_OPTIONS, spark_settings
from sqlstream.spark.storage.storage import CHECKPOINT_FILES, PLAIN_FILES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PARTS = ("a", "b", "c", "d", "e")
THROUGHPUT = {"cloudtrail": "cloudtrail", "windows": "windows"}
FLAT = {"flat": "flat"}
PLAIN_LOG = {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}

Case = Callable[[Path], float]


@dataclass(frozen=True)
class Bench:
    """The folder for rows and runs, and the settings of the benchmark. Each case runs `repeat` times."""

    folder: Path
    repeat: int
    records: int
    pipelines: Path

    def data(self, name: str) -> Path:
        """Returns the folder of the rows `name`."""
        return self.folder / "data" / name

    def alternate(self, cases: Mapping[str, Case]) -> dict[str, list[float]]:
        """Returns all results of each case. The cases run in turns."""
        found: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(self.repeat):
            for name, case in cases.items():
                found[name].append(case(self.new_folder(f"{name}-{number}")))
        return found

    def new_folder(self, name: str) -> Path:
        """Returns the path of a new folder."""
        return Path(tempfile.mkdtemp(prefix=name.replace(" ", "-") + "-", dir=self.folder)) / "run"


def main() -> None:
    """Measures the given parts and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeat", type=int, default=5, help="number of measurements of each case")
    parser.add_argument("--records", type=int, default=1_000_000, help="rows of parts a and e")
    parser.add_argument("--pipelines", type=Path, default=ROOT / ".venv-pipelines/bin/spark-pipelines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-run-") as folder:
        bench = Bench(Path(folder), given.repeat, given.records, given.pipelines)
        for part in given.part:
            {"a": throughput, "b": triggers, "c": start_times, "d": many_queries, "e": data_tests}[part](bench)


def throughput(bench: Bench) -> None:
    """Part a: rows per second."""
    data = bench.data("large")
    write_cloudtrail(data / "cloudtrail", bench.records)
    write_events(data / "events", 20, bench.records // 20)
    ours: list[Batches] = []
    theirs: list[Batches] = []
    for number in range(bench.repeat):
        ours.append(
            batches_of_run(sqlstream(write_project(bench.new_folder(f"a{number}"), data, THROUGHPUT, threads=1)))
        )
        theirs.append(batches_of_script(script("throughput", data, bench.new_folder(f"plain{number}"), settings())))
    print(f"\na  rows per second, {bench.records:,} rows, median of {bench.repeat}: sqlstream and by hand")
    for query in THROUGHPUT:
        one, other = (
            statistics.median(bench.records / sum(each[query]) * 1000 for each in side) for side in (ours, theirs)
        )
        print(f"   {query:12} {one:12,.0f} {other:12,.0f}  {verdict(one / other, 0.97, least=True)}")
    print(f"   plans: {'equal except for the node that counts rows' if same_plans(bench, data) else 'DIFFERENT'}")


def same_plans(bench: Bench, data: Path) -> bool:
    """Whether Spark's event logs have the same plans for the batches of both sides."""
    plans = []
    for side in ("sqlstream", "plain"):
        log = bench.new_folder(f"log-{side}")
        log.mkdir()
        logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(log), **PLAIN_LOG}
        if side == "sqlstream":
            sqlstream(write_project(bench.new_folder("plans"), data, THROUGHPUT, threads=1, spark=logged))
        else:
            script("throughput", data, bench.new_folder("plans"), {**settings(), **logged})
        (path,) = log.iterdir()
        plans.append(plans_of(path))
    for one, other in (plans, plans[::-1]):
        for plan in one - other:
            print("   only one side:", " < ".join(plan)[:2000])
    return plans[0] == plans[1]


def triggers(bench: Bench) -> None:
    """Part b: the time of batches."""
    data = bench.data("batches")
    write_events(data / "events", 300, 1_000)
    found = bench.alternate(
        {
            "sqlstream": lambda folder: steady_median(
                batches_of_run(sqlstream(write_project(folder, data, FLAT)))["flat"]
            ),
            "by hand": lambda folder: steady_median(
                batches_of_script(script("triggers", data, folder, settings()))["flat"]
            ),
        }
    )
    one, other = map(statistics.median, found.values())
    print(f"\nb  ms of a batch of 1,000 rows, median of {bench.repeat}: sqlstream and by hand")
    print(f"   {one:.1f} {other:.1f}  {verdict(one / other, 1.03)}")


def steady_median(batches: Sequence[float]) -> float:
    """Returns the median of the steady batches."""
    return statistics.median(steady(batches))


def steady(batches: Sequence[float]) -> Sequence[float]:
    """Returns the batches without the first fifth, in which the JVM is still warming up."""
    return batches[len(batches) // 5 :]


def start_times(bench: Bench) -> None:
    """Part c: the time from start to end."""
    data = bench.data("small")
    write_events(data / "events", 2, 100)
    for shape, models, goal in (("stateless", STATELESS, 0.7), ("windowed", WINDOWED, 0.6)):
        cases: dict[str, Case] = {
            "sqlstream": partial(start_sqlstream, data, models),
            "by hand": partial(start_script, data, shape),
        }
        if bench.pipelines.exists():
            cases["spark-pipelines"] = partial(start_pipeline, bench.pipelines, data, models)
        found = {name: statistics.median(times) for name, times in bench.alternate(cases).items()}
        print(f"\nc  seconds from start to end, three models, {shape}, median of {bench.repeat}")
        for name, seconds in found.items():
            limit = {"by hand": goal, "spark-pipelines": 0.4}.get(name)
            result = "" if limit is None else verdict(found["sqlstream"] / seconds, limit)
            print(f"   {name:16} {seconds:6.2f}  {result}")


def start_sqlstream(data: Path, models: Mapping[str, str], folder: Path) -> float:
    """Returns the seconds of a run."""
    project = write_project(folder, data, models)
    return timed(lambda: sqlstream(project))


def start_script(data: Path, shape: str, folder: Path) -> float:
    """Returns the seconds of the script with Spark's default settings."""
    return timed(lambda: script(shape, data, folder, {}))


def start_pipeline(command: Path, data: Path, models: Mapping[str, str], folder: Path) -> float:
    """Returns the seconds of a run of Spark Declarative Pipelines."""
    pipeline = write_pipeline(folder, data, models)
    path = os.pathsep.join((str(command.parent), os.environ["PATH"]))  # it searches for a Python with PySpark
    arguments = [str(command), "run", "--spec", str(pipeline / "spark-pipeline.yml")]
    return timed(lambda: run(arguments, pipeline, PATH=path))


def many_queries(bench: Bench) -> None:
    """Part d: many queries in one run."""
    data = bench.data("many")
    write_events(data / "events", 500, 100)
    alone = steady_median(
        batches_of_run(sqlstream(write_project(bench.new_folder("one"), data, FLAT, sink="nowhere")))["flat"]
    )
    models = {f"m{number:02}": "flat" for number in range(20)}
    project = write_project(bench.new_folder("twenty"), data, models, sink="nowhere", threads=20)
    memory = measure_memory(command("run"), project)
    found = batches_of_run(project)
    late = [statistics.quantiles(steady(batches), n=20)[-1] for batches in found.values()]
    fair = alone * len(models) / (os.cpu_count() or 1)
    print(f"\nd  twenty queries of {min(map(len, found.values()))} batches in one run")
    print(f"   95 of 100 batches take at most {max(late):.0f} ms; alone {alone:.0f} ms, {fair:.0f} ms for a fair share")
    print(f"   of the cores: {max(late) / fair:.2f}")
    for what, seen in (("resident", memory.resident), ("live", memory.live)):
        quarter = len(seen) // 4
        early, last = statistics.median(seen[quarter : 2 * quarter]), statistics.median(seen[-quarter:])
        print(f"   memory, {what}: {early:.0f} MB in the second quarter, {last:.0f} MB in the last: {last / early:.2f}")


def data_tests(bench: Bench) -> None:
    """Part e: what data tests cost."""
    data = bench.data("tested")
    write_events(data / "events", 20, bench.records // 20)
    write_cloudtrail(data / "cloudtrail", bench.records)
    for model in TESTED:
        cases: dict[str, Case] = {
            "without tests": partial(tested, bench, model, ""),
            "ten tests": partial(tested, bench, model, tests_of(model, "warn")),
            "quarantine": partial(tested, bench, model, tests_of(model, "quarantine")),
            "by hand": partial(tested_by_hand, bench, model),
        }
        found = {name: statistics.median(times) for name, times in bench.alternate(cases).items()}
        print(f"\ne  {model}: ms of the steady batches, {bench.records:,} rows, median of {bench.repeat}")
        for name, other, limit in (("ten tests", "without tests", 1.1), ("quarantine", "by hand", 0.6)):
            result = verdict(found[name] / found[other], limit)
            print(f"   {name:12} {found[name]:8,.0f}   {other:14} {found[other]:8,.0f}  {result}")


def tested(bench: Bench, model: str, properties: str, folder: Path) -> float:
    """Returns the ms of the steady batches of a run of `model` with the data tests in `properties`.

    Raises: RuntimeError if the quarantine does not have the few rows that it should have.
    """
    project = sqlstream(write_project(folder, bench.data("tested"), {model: model}, properties=properties))
    (result,) = json.loads((project / "target/run_results.json").read_text())["results"]
    quarantined = result["quarantined_rows"] or 0
    if "quarantine" in properties and not 0.003 < quarantined / bench.records < 0.005:
        message = f"{quarantined} of {bench.records} rows of {model} are in quarantine"
        raise RuntimeError(message)
    return sum(steady(batches_of_run(project)[model]))


def tested_by_hand(bench: Bench, model: str, folder: Path) -> float:
    """Returns the ms of the steady batches of a script with the rules of `model`."""
    return sum(steady(batches_of_script(script(f"tested-{model}", bench.data("tested"), folder, settings()))[model]))


def settings(master: str = "local[*]", purpose: str = FINITE_RUN_JVM) -> dict[str, str]:
    """Returns the settings that make a script's Spark the same as that of a run. `purpose` are options of its JVM."""
    target = Target(name="local", master=master, storage="store", location=Location("project.yml"))
    options = f"{use_options(os.environ)} {purpose}"
    return {**spark_settings(target, "plain", "warehouse"), JVM_OPTIONS: options, CHECKPOINT_FILES: PLAIN_FILES}


def command(*arguments: str) -> list[str]:
    """Returns a sqlstream command line."""
    return [sys.executable, "-m", "sqlstream", *arguments]


def sqlstream(project: Path) -> Path:
    """Runs a project to its end and returns it."""
    run(command("run"), project)
    return project


def script(what: str, data: Path, out: Path, given: Mapping[str, str]) -> str:
    """Runs the plain PySpark script with the settings `given`, and returns its output."""
    out.mkdir(parents=True)
    pairs = [f"{name}={value}" for name, value in given.items() if value]
    return run([sys.executable, str(HERE / "runs/plain.py"), what, str(data), str(out), *pairs], out)


def run(arguments: Sequence[str], folder: Path, **environment: str) -> str:
    """Returns the output of a command. Raises: SystemExit if it fails."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr[-3000:]}")
    return done.stdout


def timed(call: Callable[[], object]) -> float:
    """Returns the seconds that `call` takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def verdict(ratio: float, goal: float, *, least: bool = False) -> str:
    """Returns the ratio and whether it reaches the goal."""
    reached = ratio >= goal if least else ratio <= goal
    return f"{ratio:.2f}, {'at least' if least else 'at most'} {goal:g}: {'reached' if reached else 'MISSED'}"


if __name__ == "__main__":
    main()
