"""`make bench-test`: compares `sqlstream test` with the same cases in pytest and PySpark, and with dbt.

    stateful   40 cases of four batches, in pytest and PySpark with the settings of sqlstream
    stock      the first cases of each shape, in pytest and PySpark with Spark's default settings: half a minute each
    stateless  40 cases, in `dbt test` on DuckDB
    first      from the start of the process to the first passed test

The commands run one at a time, in turns. Results are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.cases import stateful, stateless
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.class_archive import use_options
from sqlstream.spark.jvm.session import JVM_OPTIONS, SHORT_LIVED_JVM, spark_settings
from sqlstream.testing.session_settings import target_of_tests

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("stateful", "stateless", "first", "stock")


def main() -> None:
    """Measures the given parts and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeat", type=int, default=5, help="number of measurements of each command")
    parser.add_argument("--stock", type=int, default=2, help="number of cases of each shape in part `stock` (1 to 10)")
    parser.add_argument("--dbt", type=Path, default=ROOT / ".venv-dbt/bin/dbt")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-test-") as folder:
        project, stock, tuned = (_folder(folder, name) for name in ("sqlstream", "stock", "tuned"))
        stateful.write_project(project)
        stateful.write_plain(stock, {})
        stateful.write_plain(tuned, _settings())
        if "stateful" in given.part:
            found = _alternate(given.repeat, {"sqlstream": _sqlstream_test(project), "tuned": _pytest(tuned)})
            _print_results("40 stateful cases", found, {"tuned": 1.2})
        if "first" in given.part:
            one = _sqlstream_test(project, "unit_test:tumbling.case_0")
            found = _alternate(given.repeat, {"sqlstream": one, "stock": _pytest(stock, "tumbling_0")})
            _print_results("from start to the first passed test", found, {"stock": 0.5})
        if "stock" in given.part:
            numbers = range(given.stock)
            ours = _sqlstream_test(project, *(f"unit_test:case_{number}" for number in numbers))
            theirs = _pytest(stock, *(f"{shape}_{number}" for shape in stateful.SHAPES for number in numbers))
            found = _alternate(1, {"sqlstream": ours, "stock": theirs})
            _print_results(f"{len(stateful.SHAPES) * given.stock} stateful cases", found, {"stock": 0.2})
        if "stateless" in given.part:
            _stateless(folder, given.repeat, given.dbt)


def _stateless(folder: str, repeat: int, dbt: Path) -> None:
    ours, theirs = _folder(folder, "flat"), _folder(folder, "dbt")
    stateless.write_sqlstream(ours)
    stateless.write_dbt(theirs)
    _run([str(dbt), "run", "--profiles-dir", "."], theirs)
    cases = {
        "sqlstream": _sqlstream_test(ours),
        "dbt test": lambda: _run([str(dbt), "test", "--profiles-dir", "."], theirs),
    }
    _print_results("40 stateless cases", _alternate(repeat, cases), {"dbt test": 2.5})


def _folder(parent: str, name: str) -> Path:
    folder = Path(parent, name)
    folder.mkdir()
    return folder


def _settings() -> dict[str, str]:
    """Returns the settings that make a session the same as that of `sqlstream test`."""
    target = target_of_tests(Target(name="local", master="local[*]", storage="store", location=Location("project.yml")))
    options = f"{use_options(os.environ)} {SHORT_LIVED_JVM}"
    return {**spark_settings(target, "plain", "warehouse"), JVM_OPTIONS: options}


def _sqlstream_test(project: Path, *selectors: str) -> Callable[[], None]:
    chosen = ["--select", *selectors] if selectors else []
    return lambda: _run([sys.executable, "-m", "sqlstream", "test", *chosen], project)


def _pytest(folder: Path, *names: str) -> Callable[[], None]:
    chosen = [f"test_plain.py::test_case[{name}]" for name in names] or ["test_plain.py"]
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *chosen]
    return lambda: _run(arguments, folder)


def _run(arguments: Sequence[str], folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}")


def _alternate(repeat: int, cases: Mapping[str, Callable[[], None]]) -> dict[str, float]:
    """Returns the median seconds of each case. The cases run in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeat):
        for name, run in cases.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}


def _print_results(what: str, found: Mapping[str, float], goals: Mapping[str, float]) -> None:
    print(f"\n{what}, seconds")
    for name, seconds in found.items():
        goal = goals.get(name)
        ratio = found["sqlstream"] / seconds
        verdict = "" if goal is None else f"  {ratio:.2f}, at most {goal:g}: {'reached' if ratio <= goal else 'MISSED'}"
        print(f"   {name:12} {seconds:7.2f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
