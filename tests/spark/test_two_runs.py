"""A second run of a running query is refused before anything starts, and the first run continues."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.app.request import ProjectRequest
from sqlstream.app.state.files import repair_checkpoint
from sqlstream.errors import FindingsError
from tests.spark.conftest import ProjectFolder, order_rows, wait_for

READ = "select id from {{ source('shop', 'orders') }}"
FIRST = f"{{{{ config(sink='lake', trigger='100 milliseconds') }}}} {READ}"
OTHER = f"{{{{ config(sink='nowhere') }}}} {READ}"


def refusal(raised: pytest.ExceptionInfo[FindingsError]) -> tuple[str, str]:
    """Returns the code and the reason of the only finding."""
    (finding,) = raised.value.findings
    return finding.code, finding.why


def test_a_second_run_of_a_query_is_refused(
    orders: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """The refusal names the process; other queries run in parallel, and a killed run leaves no lock behind."""
    orders.write({"models/first.sql": FIRST, "models/other.sql": OTHER})
    process = orders.command("run", "--select", "first", "--log-format", "json")
    wait_for(process, '"event": "batch"')

    with pytest.raises(FindingsError) as raised:
        orders.run()
    code, why = refusal(raised)
    assert (code, f"process {process.pid} on " in why) == ("query-in-use", True)
    with pytest.raises(FindingsError) as raised:
        repair_checkpoint(ProjectRequest(orders.root, env=dict(os.environ)), "first")
    assert refusal(raised)[0] == "query-in-use"
    assert orders.result("other").rows_out == 10

    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    orders.run("first")
    ids = sorted(row["id"] for row in read_parquet(orders.root / "store/first"))
    assert ids == [row["id"] for number in range(2) for row in order_rows(number)]
