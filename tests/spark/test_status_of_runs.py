"""`sqlstream status` during a run, and after it was killed."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import Notice, QuerySilent
from sqlstream.state.runs.silence import Cause
from tests.spark.conftest import ProjectFolder, wait_for

HOURLY = """{{ config(sink='lake', trigger='100 milliseconds') }}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, count(*) as n
from {{ source('shop', 'orders') }} group by window(ts, '1 hour')"""


def status(folder: ProjectFolder, *arguments: str) -> tuple[int, str]:
    """Returns the exit code and the output of the command."""
    process = folder.command("status", *arguments)
    out, _ = process.communicate()
    return process.returncode, out


@pytest.mark.slow
def test_the_status_of_a_run_and_of_one_that_was_killed(folder: ProjectFolder) -> None:
    """Status says that a window waits and which event closes it; after a kill it reports the run as killed."""
    for number in range(3):
        row = {"id": number, "ts": f"2024-01-01T12:0{number}:00Z", "kind": "a", "amount": 1}
        folder.rows(f"in/orders/{number}.json", [row], modified=number)
    folder.write({"models/hourly.sql": HOURLY})
    process = folder.command("run", "--log-format", "json")
    printed = wait_for(process, '"event": "query_silent"')[-1]

    code, text = status(folder)
    assert code == 0
    assert f"as process {process.pid}" in text
    assert f"hourly: in use by process {process.pid} on " in text
    waits = "the first window ends at 2024-01-01 13:00; an event with the time 2024-01-01 13:10 or later must arrive to advance it past that"
    assert waits in text
    silent: dict[str, Any] = json.loads(printed)
    assert (silent["model"], silent["cause"], waits in silent["text"]) == ("hourly", "watermark", True)

    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    code, text = status(folder, "--output", "json", "-s", "hourly")
    found = json.loads(text)
    assert (code, found["succeeded"], found["runs"][0]["life"]) == (1, False, "killed")
    (query,) = found["queries"]
    assert (query["status"], query["rows_in"], query["rows_out"], query["late_rows"]) == ("killed", 3, 0, 0)
    assert query["progress"]["state"]["rows"] == 1


@pytest.mark.slow
def test_a_query_lacks_input_only_after_it_has_looked(folder: ProjectFolder) -> None:
    """A query that has found no data says so, and no longer once its first batch runs. One with data never says it."""
    (folder.root / "in/empty").mkdir(parents=True)
    sources = (folder.root / "sources.yml").read_text()
    folder.write({"sources.yml": sources + sources.split("tables:\n")[1].replace("orders", "empty")})
    folder.rows("in/orders/0.json", [{"id": 0}], modified=0)
    sleeps = "{{ config(sink='nowhere') }} select id, java_method('java.lang.Thread', 'sleep', cast(8000 as bigint)) as z from "
    folder.write({f"models/{name}.sql": sleeps + f"{{{{ source('shop', '{name}') }}}}" for name in ("orders", "empty")})
    process = folder.command("run", "--log-format", "json")
    printed = wait_for(process, '"waits": true')
    printed += wait_for(process, '"event": "batch"')
    code, text = status(folder)
    assert (code, "empty emits no rows: no rows have arrived from shop.empty since it started" in text) == (0, True)

    folder.rows("in/empty/0.json", [{"id": 0}], modified=0)
    printed += wait_for(process, '"waits": false')
    assert "no rows have arrived" not in status(folder)[1]
    printed += wait_for(process, '"event": "batch"')
    process.send_signal(signal.SIGINT)
    process.communicate()

    waits = [json.loads(line) for line in printed if '"query_waiting"' in line]
    assert [(each["model"], each["waits"]) for each in waits if each["model"] == "empty"] == [
        ("empty", True),
        ("empty", False),
    ]
    assert [each["waits"] for each in waits if each["model"] == "orders"] in ([], [False])


@pytest.mark.slow
def test_an_idle_side_of_a_join_is_named(folder: ProjectFolder) -> None:
    """Of two joined streams, status names the idle one that holds back the watermark."""
    sources = (folder.root / "sources.yml").read_text()
    again = sources.replace("name: orders", "name: returns").replace("in/orders", "in/returns").split("tables:\n")[1]
    folder.write({"sources.yml": sources + again})
    for number in range(4):
        folder.rows(f"in/orders/{number}.json", [{"id": number, "ts": f"2024-01-01T1{number}:00:00Z"}], modified=number)
    folder.rows("in/returns/0.json", [{"id": 0, "ts": "2024-01-01T10:00:00Z"}], modified=0)
    folder.write(
        {
            "models/both.sql": """{{ config(sink='nowhere') }}
select /*+ WATERMARK(o.ts, '1 minute'), WATERMARK(r.ts, '2 minutes') */ window(o.ts, '1 day').start as day, count(*) as n
from {{ source('shop', 'orders') }} o join {{ source('shop', 'returns') }} r
  on o.id = r.id and o.ts between r.ts - interval 1 day and r.ts group by window(o.ts, '1 day')"""
        }
    )

    folder.run()

    entry = json.loads((folder.root / "target/run_results.json").read_text())["results"][0]
    assert (entry["rows_in"], entry["rows_out"]) == (5, 0)
    lines = [json.loads(line) for line in (folder.root / "logs/events.jsonl").read_text().splitlines()]
    silent = [line for line in lines if line["event"] == "query_silent"][-1]
    assert (silent["cause"], "shop.returns has sent no rows for 3 batches" in silent["text"]) == ("idle_source", True)


def test_rows_behind_the_watermark_are_counted(folder: ProjectFolder) -> None:
    """After one event moves the watermark, status counts the late rows that follow. Spark 4.3 compares rows with the
    watermark of the batch before, so the first of them still makes a window, which comes out at once.
    """
    hours = ["20", "01", "02", "03", "04", "05"]
    for number, hour in enumerate(hours):
        folder.rows(f"in/orders/{number}.json", [{"id": number, "ts": f"2024-01-01T{hour}:00:00Z"}], modified=number)
    folder.write({"models/hourly.sql": HOURLY})

    folder.run()

    entry = json.loads((folder.root / "target/run_results.json").read_text())["results"][0]
    assert (entry["rows_in"], entry["rows_out"], entry["late_rows"]) == (6, 1, 4)
    assert entry["newest_event"] == "2024-01-01T20:00:00.000Z"
    assert entry["watermark_lag_seconds"] == 600
    assert [event.silence.cause for event in folder.events if isinstance(event, QuerySilent)][-1] is Cause.LATE


@pytest.mark.slow
def test_a_run_without_rows_explains_why(orders: ProjectFolder) -> None:
    """A run without rows explains why, as status does; a second run without input gives a different reason."""
    orders.write(
        {
            "models/none.sql": "{{ config(sink='lake') }} select * from {{ source('shop', 'orders') }} where id < 0",
        }
    )

    orders.run("none")

    silences = [event for event in orders.events if isinstance(event, QuerySilent)]
    why = "10 rows were read in 2 batches, but conditions or joins in the query removed all of them"
    assert [(event.silence.cause, event.silence.text, event.has_ended) for event in silences] == [
        (Cause.FILTERED, why, True)
    ]
    assert f"none emitted no rows: {why}" in status(orders)[1]

    orders.run("none")
    assert not [event for event in orders.events if isinstance(event, QuerySilent)]
    assert "none emitted no rows: there was no new data to read from shop.orders" in status(orders)[1]


def test_an_empty_source_is_named_once_for_all_its_queries(folder: ProjectFolder) -> None:
    """An empty source is named once for all its queries, by the run and by status; a missing folder refuses the run."""
    model = "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"
    folder.write({"models/a.sql": model, "models/b.sql": model})
    with pytest.raises(FindingsError) as refused:
        folder.run()
    assert [finding.code for finding in refused.value.findings] == ["source-unreadable"]

    (folder.root / "in/orders").mkdir(parents=True)
    folder.run()

    assert [event.text for event in folder.events if isinstance(event, Notice)] == [
        "shop.orders has no files in in/orders yet; a, b have no data to read from it"
    ]
    assert "\na, b emitted no rows: there was no new data to read from shop.orders\n" in status(folder)[1]
