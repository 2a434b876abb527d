"""A program that calls `run_models` keeps its own logging."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import ProjectFolder

SCRIPT = """
import logging
from pathlib import Path
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from sqlstream import FindingsError, ProjectRequest, RunRequest, run_models
from sqlstream.app.request import Selection

def state():
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j", "sqlglot", "sqlstream")
    return {name: (logging.getLogger(name).level, logging.getLogger(name).disabled) for name in names}

def run(model):
    request = RunRequest(ProjectRequest(Path.cwd()), Selection((model,)), available_now=True)
    return run_models(request, lambda event: levels.append(logging.getLogger("py4j").level))

logging.getLogger("py4j").setLevel(logging.INFO)
levels = []
assert run("good").succeeded
assert set(levels) == {logging.INFO}, levels
assert logging.getLogger("py4j").level == logging.INFO
assert logging.getLogger("sqlglot").level == logging.NOTSET
assert not logging.getLogger().handlers
try:
    run("bad")
except FindingsError as error:
    print("REFUSED", error.findings[0].code)
assert logging.getLogger("py4j").level == logging.INFO
assert not logging.getLogger().handlers

logging.basicConfig(format="ROOT %(message)s")
logging.warning("heard")
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    session.sql("select nowhere")
except AnalysisException:
    print("RAISED")
"""


@pytest.mark.slow
def test_logging_is_restored(orders: ProjectFolder) -> None:
    """After a run, also one that Spark refuses, levels and handlers are restored and PySpark logs its errors again."""
    orders.write(
        {
            "models/good.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
            "models/bad.sql": "{{ config(sink='lake') }} select cast(to_json(named_struct('id', id)).x as int) as x "
            "from {{ source('shop', 'orders') }}",
            "run.py": SCRIPT,
        }
    )

    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=orders.root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("RAISED")
    assert "REFUSED" in done.stdout
    assert "ROOT heard" in done.stderr
    before, _, after = done.stderr.partition("ROOT heard")
    assert "QueryContextLogger" not in before
    assert "SQLQueryContextLogger" in after
