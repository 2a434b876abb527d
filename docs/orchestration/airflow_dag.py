"""An Airflow DAG that builds a sqlstream project every 15 minutes, and retries only what failed."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

PROJECT = os.environ.get("SHOP_PROJECT", "/srv/shop")
SQLSTREAM = os.environ.get("SHOP_SQLSTREAM", "/opt/sqlstream/bin/sqlstream")
TARGET = os.environ.get("SHOP_TARGET", "prod")

BUILD = ("build", "--target", TARGET, "--available-now", "--output", "json")
RETRY = ("retry", "--output", "json")

FAILED = 1
"""The exit code for a failed node or an error in the project. 2 means that the command itself is wrong."""


def sqlstream(*arguments: str) -> dict:
    """Runs a command in the project. Its lines go to the log of the task; returns the JSON object on its stdout."""
    command = [SQLSTREAM, *arguments]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode > FAILED:
        raise AirflowFailException(f"sqlstream ended with code {done.returncode}; a retry cannot help")
    return json.loads(done.stdout)


@dag(
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # a checkpoint belongs to one run at a time
)
def shop_streams() -> None:
    """Builds the project."""

    @task(retries=2, retry_delay=timedelta(minutes=5))
    def build() -> dict[str, int | None]:
        """Returns the rows that each query wrote. Another attempt runs only what failed or was skipped before."""
        is_first = get_current_context()["ti"].try_number == 1
        outcome = sqlstream(*(BUILD if is_first else RETRY))
        if outcome["succeeded"] and not outcome["results"]:  # nothing to retry: a successful task was cleared
            outcome = sqlstream(*BUILD)
        for finding in outcome["findings"]:
            print(f"[{finding['code']}] {finding['message']}")
        if not outcome["succeeded"]:
            bad = [node["unique_id"] for node in outcome["results"] if node["status"] in ("error", "failed")]
            raise RuntimeError(f"failed: {', '.join(bad) or 'the project has an error'}")
        return {node["model"]: node["rows_out"] for node in outcome["results"] if "rows_out" in node}

    @task
    def report(rows: dict[str, int | None]) -> None:
        """Prints the rows of each query."""
        for model, count in rows.items():
            print(f"{model}: {count} rows")

    report(build())


shop_streams()
