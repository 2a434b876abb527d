"""A run whose output pipe is closed, as with `| head` or a closed terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]


def run_with_closed_pipe(orders: ProjectFolder, *arguments: str) -> tuple[str, str, int]:
    """Runs the project, reads one line and closes the pipe; returns the line, stderr and the exit code."""
    errors = orders.root / "stderr.txt"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "sqlstream", "run", "--available-now", *arguments],
            cwd=orders.root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.stdout.close()
    code = process.wait(LONGEST_WAIT_SECONDS)
    return line, errors.read_text(), code


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_run_continues_without_a_reader(orders: ProjectFolder, log_format: str, read_parquet: Rows) -> None:
    """Without a reader, a run drops its output, writes every batch, and exits with code 0 and an empty stderr."""
    orders.write({"models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"})

    line, errors, code = run_with_closed_pipe(orders, "--log-format", log_format)

    assert "all" in line or "Spark" in line
    assert (errors, code) == ("", 0)
    assert len(read_parquet(orders.root / "store/all")) == 10
    results = json.loads((orders.root / "target/run_results.json").read_text())
    assert (results["status"], results["results"][0]["batches"]) == ("success", 2)


@pytest.mark.slow
def test_a_failure_keeps_its_exit_code_without_a_reader(orders: ProjectFolder) -> None:
    """A failed query still gives exit code 1 when nobody reads the output."""
    poor = "{{ config(sink='nowhere') }} select raise_error('spoilt') as x from {{ source('shop', 'orders') }}"
    orders.write({"models/poor.sql": poor})

    _, errors, code = run_with_closed_pipe(orders)

    assert (errors, code) == ("", 1)
    results = json.loads((orders.root / "target/run_results.json").read_text())
    assert (results["status"], results["results"][0]["error"]["code"]) == ("error", "query-failed")
