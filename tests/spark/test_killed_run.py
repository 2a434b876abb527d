"""After a kill, target/run_results.json and logs/events.jsonl show which queries were running."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.runs.events import Notice
from tests.spark.conftest import ProjectFolder, wait_for

MODEL = "{{ config(sink='lake', trigger='1 hour') }} select id from {{ source('shop', 'orders') }}"


def results(folder: ProjectFolder) -> dict[str, Any]:
    """Returns the content of run_results.json."""
    content: dict[str, Any] = json.loads((folder.root / "target/run_results.json").read_text())
    return content


def events(folder: ProjectFolder) -> list[dict[str, Any]]:
    """Returns the lines of events.jsonl."""
    return [json.loads(line) for line in (folder.root / "logs/events.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_killed_run_leaves_its_progress(orders: ProjectFolder) -> None:
    """The results of a killed run name its process, the started query and its progress so far."""
    orders.write({"models/slow.sql": MODEL})
    process = orders.command("run", "--log-format", "json")
    wait_for(process, '"event": "batch"')
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    found = results(orders)
    assert (found["status"], found["metadata"]["pid"]) == ("running", process.pid)
    (query,) = found["results"]
    assert (query["model"], query["status"]) == ("slow", "running")
    assert query["checkpoint"] == str(orders.root / "store/queries/slow/v1/checkpoint")
    assert query["error"] is None
    recorded = events(orders)
    assert [event["event"] for event in recorded][:6] == [
        "run_began",
        "run_loaded",
        "queries_chosen",
        "run_started",
        "query_started",
        "batch",
    ]
    assert {event["invocation_id"] for event in recorded} == {found["metadata"]["invocation_id"]}
    assert (recorded[5]["model"], recorded[5]["rows_in"], recorded[5]["query"]["status"]) == ("slow", 5, "running")
    assert recorded[5]["sources"][0]["name"] == "shop.orders"
    assert recorded[5]["parts_ms"]["addBatch"] > 0


def test_a_finished_run_records_all_rows(orders: ProjectFolder) -> None:
    """A finished run records the query's last progress and all of its rows; each batch has one line in the journal."""
    orders.write({"models/all.sql": MODEL})

    orders.run()

    (query,) = results(orders)["results"]
    assert (query["status"], query["rows_in"], query["progress"]["batch_id"]) == ("success", 10, 1)
    recorded = events(orders)
    assert [event["batch_id"] for event in recorded if event["event"] == "batch"] == [0, 1]
    assert (recorded[-1]["event"], recorded[-1]["succeeded"]) == ("run_ended", True)


def test_an_unwritable_journal_does_not_end_a_run(orders: ProjectFolder) -> None:
    """A journal that cannot be written does not end the run, which warns about it once."""
    orders.write({"models/all.sql": MODEL, "logs": "a file where the folder should be"})

    result = orders.result()

    assert result.rows_out == 10
    notices = [event for event in orders.events if isinstance(event, Notice) and "events.jsonl" in event.text]
    assert len(notices) == 1


def test_secrets_are_not_in_the_journal(orders: ProjectFolder) -> None:
    """Secrets do not appear in the journal, although Spark reports the path of a source."""
    orders.write({"models/all.sql": MODEL})
    secret = orders.root.name
    sources = Path(orders.root / "sources.yml")
    sources.write_text(sources.read_text().replace("in/orders", f"{orders.root}/in/orders"))

    orders.run(env={"SQLSTREAM_SECRET_PLACE": secret})

    assert (orders.root / "logs/events.jsonl").exists()
    assert secret not in (orders.root / "logs/events.jsonl").read_text()
