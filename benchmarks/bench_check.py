"""`make bench-check`: measures the time per model of `sqlstream compile --check` after Spark has started.

The project is that of the other benchmarks: chains of ten models in three shapes, all with many CTEs. Spark analyzes
the models several times in one session, because Java's code is not compiled yet in the first round.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generate import chains, write_sqlstream_project
from sqlstream.app.compile.compile import choose
from sqlstream.app.loading.load import load
from sqlstream.app.request import EVERYTHING, ProjectRequest
from sqlstream.app.session.session import spark_session
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.queries.model_check import check_with_spark
from sqlstream.spark.secrets import Secrets

LIMIT_SECONDS = 0.25
"""The maximal time per model."""


def main() -> int:
    """Prints the seconds per model of each round. Returns 1 if the first round, as in the command, takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sqlstream-bench-") as name:
        folder = Path(name)
        write_sqlstream_project(folder, arguments.models)
        _make_inputs(folder, arguments.models)
        seconds = _measure(folder, arguments.rounds)
    for number, round_seconds in enumerate(seconds, 1):
        sys.stdout.write(f"round {number}: {round_seconds:.1f} s, {round_seconds / arguments.models:.3f} s per model\n")
    return 0 if seconds[0] / arguments.models <= LIMIT_SECONDS else 1


def _make_inputs(folder: Path, models: int) -> None:
    """Creates the empty folders that the sources read."""
    for name in (*(chain.folder for chain in chains(models)), "regions"):
        (folder / "data" / name).mkdir(parents=True, exist_ok=True)


def _measure(folder: Path, rounds: int) -> list[float]:
    compiled = choose(load(ProjectRequest(folder, env=dict(os.environ))), EVERYTHING)
    secrets = Secrets({})
    began = time.monotonic()
    with spark_session(compiled.loaded, secrets) as runtime:
        seconds = time.monotonic() - began
        sys.stdout.write(f"{os.cpu_count()} cores, Spark {runtime.version}, started in {seconds:.1f} s\n")
        return [_round(compiled.loaded.compiled, compiled.models, runtime, secrets) for _ in range(rounds)]


def _round(
    compiled: CompiledProject, models: Sequence[CompiledModel], runtime: SparkRuntime, secrets: Secrets
) -> float:
    began = time.monotonic()
    refusals = [refusal for found in check_with_spark(compiled, models, runtime, secrets) for refusal in found]
    if refusals:
        raise SystemExit("\n".join(refusal.finding.head for refusal in refusals))
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
