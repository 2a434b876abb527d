"""`make bench-plan`: compares `sqlstream plan` with an unchanged `sqlstream compile`.

The project has 1,000 models, and ledgers of 200 queries. Both run as commands, in turns. Results are medians of five.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import generate
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.request import ProjectRequest
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.layout import checkpoint_path, ledger_path, query_root
from sqlstream.state.ledger import Ledger

ROOT = Path(__file__).resolve().parent.parent

MODELS, CHAIN, BATCHES, REPEAT, GOAL = 1000, 5, 100, 5, 1.3
"""Each chain of models ends in a query. A checkpoint keeps the files of about a hundred batches."""


def main() -> None:
    """Measures both commands and prints the ratio."""
    generate.CHAIN = CHAIN
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as name:
        folder = Path(name)
        generate.write_sqlstream_project(folder, MODELS)
        timed(folder, "compile")
        queries = write_ledgers(folder)
        timed(folder, "plan")
        found = [(timed(folder, "compile"), timed(folder, "plan")) for _ in range(REPEAT)]
    compiled, planned = (statistics.median(times) for times in zip(*found, strict=True))
    verdict = "reached" if planned / compiled <= GOAL else "MISSED"
    print(f"{MODELS} models, {queries} queries: compile {compiled:.2f} s, plan {planned:.2f} s")
    print(f"ratio {planned / compiled:.2f}, goal {GOAL}: {verdict}")


def write_ledgers(folder: Path) -> int:
    """Writes the ledger and the batches of each query, as if it had run, and returns the number of queries."""
    compiled = load_for_reading(ProjectRequest(folder, env=os.environ)).compiled
    queries = [model for model in compiled.models.values() if model.output is not None]
    for model in queries:
        root = query_root(str(folder / "data"), model.query_id, None)
        nothing = CheckpointState(0, None, has_batches=False, ledger_path="")
        identity = identity_without_spark(compiled, model, nothing)
        ledger = Ledger(identity, 1, "2026-01-01T00:00:00+00:00", "0.1.0", "4.3.0", "start")
        for kind in ("offsets", "commits"):
            entries = Path(checkpoint_path(root, 1)) / kind
            entries.mkdir(parents=True)
            for number in range(BATCHES):
                (entries / str(number)).touch()
        log = folder / "data" / model.name / "_spark_metadata"  # of its output, which has all batches
        log.mkdir(parents=True)
        for number in range(BATCHES):
            (log / str(number)).write_text("v1")
        Path(ledger_path(root, 1)).write_text(ledger.to_json())
    return len(queries)


def timed(folder: Path, command: str) -> float:
    """Returns the seconds of one call. Raises: SystemExit if it fails."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "sqlstream", command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
