"""`make bench-compile`: compares time and memory of `sqlstream compile` and `dbt parse` on the same models.

Both run as commands, like users run them, in turns, so that a busy machine slows down both. Results are medians of
several measurements. Seconds are wall time, followed by processor time in parentheses, which other programs on the
machine affect less. Memory is the peak of the largest process, in MB.
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
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.generate import edit_a_model, write_dbt_project, write_sqlstream_project

ROOT = Path(__file__).resolve().parent.parent
KIB_PER_MB = 1024
"""`ru_maxrss` is in KiB on Linux."""

GOALS = {"cold": 0.55, "unchanged": 0.35, "one model changed": 0.35}
"""The maximal time relative to `dbt parse` in the same case."""

GROWTH_GOAL = 5.5
"""The maximal time for five times as many models, relative to the smaller project."""

CASES = ("cold", "unchanged", "one model changed")


@dataclass(frozen=True)
class Tool:
    """One of the two tools: its command, its project, and its additional environment variables."""

    name: str
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]

    def run(self) -> Sample:
        """Returns the cost of one call. Raises: SystemExit if it fails."""
        started = time.perf_counter()
        with subprocess.Popen(
            self.command,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            output = process.stdout.read() if process.stdout else b""
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(self.command)} failed:\n{output.decode(errors='replace')}")
        return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / KIB_PER_MB)


@dataclass(frozen=True)
class Sample:
    """The cost of one call."""

    seconds: float
    processor_seconds: float
    megabytes: float


Samples = dict[tuple[str, str, int], list[Sample]]
"""By tool, case and number of models."""


def main() -> None:
    """Measures all cases and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, nargs="+", default=[1000, 5000], help="sizes of the projects")
    parser.add_argument("--repeat", type=int, default=5, help="number of measurements of each case")
    parser.add_argument("--dbt", type=Path, default=ROOT / ".venv-dbt" / "bin" / "dbt", help="path of dbt")
    given = parser.parse_args()
    samples: Samples = {}
    with tempfile.TemporaryDirectory(prefix="bench-compile-") as folder:
        for models in given.models:
            measure(Path(folder), models, given.repeat, given.dbt, samples)
            print_size(samples, models)
    for smaller, larger in zip(given.models, given.models[1:], strict=False):
        print_growth(samples, smaller, larger)


def measure(folder: Path, models: int, repeat: int, dbt: Path, samples: Samples) -> None:
    """Adds the cost of every case with `models` models to `samples`. The two tools run in turns."""
    tools = (_sqlstream(folder / f"sqlstream-{models}"), _dbt(folder / f"dbt-{models}", dbt))
    write_sqlstream_project(tools[0].folder, models)
    write_dbt_project(tools[1].folder, models)
    prepare: dict[str, Callable[[Tool, int], None]] = {
        "cold": lambda tool, edition: _move_away(tool.folder / "target", f"{tool.name}-{models}-{edition}"),
        "unchanged": lambda *_: None,
        "one model changed": lambda tool, edition: edit_a_model(tool.folder, models, edition),
    }
    for edition, case, tool in product(range(repeat), CASES, tools):
        prepare[case](tool, edition)
        samples.setdefault((tool.name, case, models), []).append(tool.run())


def _move_away(target: Path, name: str) -> None:
    """Moves a project's target folder away. It is deleted only at the end, because ext4 takes several times as long to
    create files after deleting many, which does not happen in a fresh clone.
    """
    if target.exists():
        target.rename(target.parents[1] / f"moved-away-{name}")


def _sqlstream(folder: Path) -> Tool:
    python_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return Tool("sqlstream", (sys.executable, "-m", "sqlstream", "compile"), folder, {"PYTHONPATH": python_path})


def _dbt(folder: Path, dbt: Path) -> Tool:
    return Tool("dbt", (str(dbt), "parse", "--profiles-dir", "."), folder, {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false"})


def print_size(samples: Samples, models: int) -> None:
    """Prints the table of one size: medians of both tools, their ratio, and the goal."""
    print(f"\n{models:,} models, median of {len(samples['dbt', 'cold', models])}")
    print(f"{'':20} {'sqlstream':>24} {'dbt parse':>24} {'ratio':>7}  goal")
    for case in CASES:
        ours, theirs = samples["sqlstream", case, models], samples["dbt", case, models]
        ratio = seconds(ours) / seconds(theirs)
        print(
            f"{case:20} {_cost(ours):>24} {_cost(theirs):>24} {ratio:7.2f}  {_verdict(ratio, GOALS[case])}", flush=True
        )


def print_growth(samples: Samples, smaller: int, larger: int) -> None:
    """Prints the growth of each case's time with the number of models."""
    print(f"\n{larger:,} models / {smaller:,} models")
    for case in CASES:
        ours, theirs = (
            seconds(samples[tool, case, larger]) / seconds(samples[tool, case, smaller])
            for tool in ("sqlstream", "dbt")
        )
        goal = _verdict(ours, GROWTH_GOAL * larger / smaller / 5)
        print(f"{case:20} {ours:24.2f} {theirs:24.2f} {'':7}  {goal}")


def seconds(samples: Sequence[Sample]) -> float:
    """Returns the median wall time in seconds."""
    return statistics.median(sample.seconds for sample in samples)


def _cost(samples: Sequence[Sample]) -> str:
    megabytes = statistics.median(sample.megabytes for sample in samples)
    processor = statistics.median(sample.processor_seconds for sample in samples)
    return f"{seconds(samples):.2f} s ({processor:.2f}) {megabytes:.0f} MB"


def _verdict(ratio: float, goal: float) -> str:
    return f"at most {goal:.2g}: {'reached' if ratio <= goal else 'MISSED'}"


if __name__ == "__main__":
    main()
