"""Alerts of real queries: each kind is raised and resolved, and delivered to a real receiver; `lag_over`
also in test_kafka.py and test_lake_status.py.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sqlstream import ProjectRequest, RunRequest, run_models
from sqlstream.app.run.recorded import RunOutcome
from sqlstream.state.runs.events import AlertChanged, Notice, RunEvent
from sqlstream.state.runs.limits import RunLimits
from sqlstream.state.runs.progress import BatchProgress
from tests.services.alert_receiver import Receiver, alerts_to, receiving
from tests.spark.conftest import ProjectFolder, order_rows, wait_for

LONGEST_RUN = RunLimits(for_seconds=120.0)
"""Stops a run in which what a test waits for does not happen."""

Change = tuple[str, str]
"""The kind of an alert, and its new state."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers at once."""
    with receiving() as started:
        yield started


def run_and_react(
    folder: ProjectFolder, react: dict[Change, Callable[[], object]], until: Callable[[set[Change]], object]
) -> RunOutcome:
    """Runs all queries with their own triggers. Calls the reaction to each change of an alert once, and stops the run
    once `until` is true for the changes.
    """
    folder.events, seen = [], set[Change]()

    def notify(event: RunEvent) -> None:
        folder.events.append(event)
        if isinstance(event, AlertChanged):
            change = (event.alert, event.state)
            was_done = until(seen)
            if change not in seen:
                seen.add(change)
                react.get(change, lambda: None)()
            if until(seen) and not was_done:
                signal.raise_signal(signal.SIGTERM)

    return run_models(RunRequest(project=ProjectRequest(folder.root), limits=LONGEST_RUN), notify)


def changes(folder: ProjectFolder) -> list[Change]:
    """Returns the changes of alerts in the last run."""
    return [(event.alert, event.state) for event in folder.events if isinstance(event, AlertChanged)]


QUIET = (
    "{{ config(sink='lake', trigger='1 second', alerts={'no_rows_for': '1 second'}) }}\n"
    "select id, amount from {{ source('shop', 'payments') }} where amount > 100\n"
)
WINDOWS = (
    "{{ config(sink='lake', trigger='1 second', alerts={'watermark_behind': '1 hour', "
    "'late_rows_over': {'rows': 0, 'per': '2 seconds'}, 'state_rows_over': 3}) }}\n"
    "select /*+ WATERMARK(ts, '1 second') */ window(ts, '1 second') as w, count(*) as n\n"
    "from {{ source('shop', 'orders') }} group by window(ts, '1 second')\n"
)
STRICT = (
    "{{ config(sink='lake', trigger='1 second', alerts={'quarantined_over': {'rows': 0, 'per': '2 seconds'}}) }}\n"
    "select id from {{ source('shop', 'payments') }}\n"
)
UNSTEADY = (
    "{{ config(sink='shaky', trigger='1 second', retries={'attempts': 3, 'first_delay': '10 milliseconds'}, "
    "alerts={'restarts_over': {'restarts': 0, 'per': '2 seconds'}}) }}\n"
    "select id from {{ source('shop', 'orders') }}\n"
)
SHAKY = (
    "from pathlib import Path\n\n\ndef send(rows, batch):\n    mark = Path(batch.options['mark'])\n"
    "    if not mark.exists():\n        mark.touch()\n        raise ValueError('planted')\n"
)
PAYMENTS = (
    "      - name: payments\n        format: json\n        path: in/payments\n        schema: id int, amount int\n"
    "        on_corrupt: quarantine\n        quarantine_sink: lake\n"
)
RESOLVED = {
    (kind, state)
    for kind in (
        "no_rows_for",
        "watermark_behind",
        "late_rows_over",
        "state_rows_over",
        "quarantined_over",
        "restarts_over",
    )
    for state in ("raised", "resolved")
}


@pytest.mark.slow
def test_alerts_of_running_queries_are_raised_and_resolved(folder: ProjectFolder, receiver: Receiver) -> None:
    """A query without rows, one whose watermark, late rows and state are over their limits, one with quarantined
    records and one that restarts raise alerts; each is resolved when the condition ends, and the receiver gets both.
    """
    alerts_to(folder.root, receiver.url)
    sources = folder.root / "sources.yml"
    sinks = folder.root / "sinks.yml"
    folder.write(
        {
            "sources.yml": sources.read_text() + PAYMENTS,
            "sinks.yml": f"{sinks.read_text()}  - name: shaky\n    format: python\n    function: shaky:send\n"
            f"    options: {{mark: '{folder.root}/mark'}}\n",
            "python/shaky.py": SHAKY,
            "models/quiet.sql": QUIET,
            "models/windows.sql": WINDOWS,
            "models/strict.sql": STRICT,
            "models/strict_too.sql": STRICT,
            "models/unsteady.sql": UNSTEADY,
        }
    )
    folder.rows("in/orders/0.json", order_rows(0), modified=0)
    folder.rows("in/payments/0.json", [{"id": 1, "amount": 1}], modified=0)

    def now() -> list[dict[str, Any]]:
        return [{"id": 90, "ts": datetime.now(UTC).isoformat(), "kind": "a", "amount": 1}]

    def corrupt() -> None:
        (folder.root / "in/payments/2.json").write_text("{broken\n")

    reactions: dict[Change, Callable[[], object]] = {
        ("no_rows_for", "raised"): lambda: folder.rows("in/payments/1.json", [{"id": 2, "amount": 200}]),
        ("no_rows_for", "resolved"): corrupt,
        ("watermark_behind", "raised"): lambda: folder.rows("in/orders/1.json", now(), modified=1),
        ("watermark_behind", "resolved"): lambda: folder.rows("in/orders/2.json", order_rows(1), modified=2),
    }
    outcome = run_and_react(folder, reactions, lambda seen: seen >= RESOLVED)

    assert outcome.succeeded
    assert set(changes(folder)) >= RESOLVED
    receiver.wait(lambda: set(receiver.states()) >= RESOLVED)
    raised = {body["alert"]: body for body in receiver.accepted if body["state"] == "raised"}
    resolved = {body["alert"]: body for body in receiver.accepted if body["state"] == "resolved"}
    assert {kind: body["alert_id"] for kind, body in raised.items()}.keys() == resolved.keys()
    assert raised["state_rows_over"]["value"] > 3 >= resolved["state_rows_over"]["value"]
    assert raised["quarantined_over"]["model"] == "shop__payments__corrupt"
    assert changes(folder).count(("quarantined_over", "raised")) == 1


@pytest.mark.slow
def test_files_left_to_read(folder: ProjectFolder, receiver: Receiver) -> None:
    """`lag_over` counts the files of a folder that a query has not read, also while no batch runs."""
    alerts_to(folder.root, receiver.url)
    source = "      - name: slow_input\n        format: json\n        path: in/slow\n        schema: id int\n"
    folder.write(
        {
            "sources.yml": (folder.root / "sources.yml").read_text()
            + f"{source}        options: {{maxFilesPerTrigger: 1}}\n",
            "models/slow.sql": "{{ config(sink='lake', trigger='1 hour', alerts={'lag_over': {'files': 1}}) }}\n"
            "select id from {{ source('shop', 'slow_input') }}\n",
        }
    )
    for number in range(4):
        folder.rows(f"in/slow/{number}.json", [{"id": number}], modified=number)

    def remove() -> None:
        for number in (1, 2, 3):
            (folder.root / f"in/slow/{number}.json").unlink()

    both = {("lag_over", "raised"), ("lag_over", "resolved")}
    assert run_and_react(folder, {("lag_over", "raised"): remove}, lambda seen: seen >= both).succeeded
    receiver.wait(lambda: set(receiver.states()) == both)
    assert [body["value"] for body in receiver.accepted] == [3, 0]
    assert receiver.accepted[0]["message"] == "slow has a lag of 3 files; the limit is 1"

    for number in range(4, 8):
        folder.rows(f"in/slow/{number}.json", [{"id": number}], modified=number)
    assert folder.run().alerts == ()  # it has read everything


FAILING = "{{ config(sink='nowhere') }}\nselect raise_error('planted') as x, id from {{ source('shop', 'orders') }}\n"
COPIES = "{{ config(sink='nowhere') }}\nselect id from {{ source('shop', 'orders') }}\n"
SLOW = (
    "{{ config(sink='lake', trigger='1 millisecond', alerts={'batch_slower_than_trigger': {'batches': 1}}) }}\n"
    "select id from {{ source('shop', 'orders') }}\n"
)


def test_the_next_run_resolves_alerts(orders: ProjectFolder, receiver: Receiver) -> None:
    """A failed query, and one whose batches are slower than its trigger, are open after the run, and known to the next
    run, which resolves them: the failed query succeeds, and the trigger is longer.
    """
    alerts_to(orders.root, receiver.url, "{failed: true}")
    orders.write({"models/failing.sql": FAILING, "models/slow.sql": SLOW})
    raised = {("failed", "raised"), ("batch_slower_than_trigger", "raised")}
    outcome = run_and_react(orders, {}, lambda seen: seen >= raised)

    assert {alert.alert for alert in outcome.alerts} == {"failed", "batch_slower_than_trigger"}
    entries = json.loads((orders.root / "target/run_results.json").read_text())["results"]
    assert [alert["alert"] for entry in entries for alert in entry["alerts"] if entry["model"] == "failing"] == [
        "failed"
    ]
    status = orders.invoke("status")
    assert "ALERT failed, raised " in status.out
    assert "planted" in status.out

    orders.write({"models/failing.sql": COPIES, "models/slow.sql": SLOW.replace("1 millisecond", "1 hour")})
    orders.rows("in/orders/9.json", order_rows(9), modified=9)
    resolved = {("failed", "resolved"), ("batch_slower_than_trigger", "resolved")}
    outcome = run_and_react(orders, {}, lambda seen: seen >= resolved)

    assert outcome.succeeded
    assert outcome.alerts == ()
    assert {change for change in changes(orders) if change[1] == "open"} == {
        ("failed", "open"),
        ("batch_slower_than_trigger", "open"),
    }
    receiver.wait(lambda: set(receiver.states()) == raised | resolved)
    assert len(receiver.states()) == 4


@pytest.mark.slow
def test_a_hanging_receiver_delays_no_batch(orders: ProjectFolder, receiver: Receiver) -> None:
    """While the receiver does not answer, the query continues with its batches."""
    alerts_to(orders.root, receiver.url)
    orders.write({"models/copies.sql": COPIES.replace("'nowhere'", "'nowhere', alerts={'no_rows_for': '1 second'}")})
    receiver.hang()
    batches = 0

    def notify(event: RunEvent) -> None:
        nonlocal batches
        orders.events.append(event)
        if isinstance(event, AlertChanged) and event.state == "raised":
            receiver.wait(lambda: receiver.waiting)  # in the thread of the alerts
            orders.rows("in/orders/10.json", order_rows(1), modified=10)
        elif isinstance(event, BatchProgress) and receiver.waiting:
            batches += 1
            orders.rows(f"in/orders/{10 + batches}.json", order_rows(1), modified=10 + batches)
            if batches == 3:
                receiver.release()
                signal.raise_signal(signal.SIGTERM)

    assert run_models(RunRequest(project=ProjectRequest(orders.root), limits=LONGEST_RUN), notify).succeeded
    assert batches >= 3
    receiver.wait(lambda: ("no_rows_for", "raised") in receiver.states())


@pytest.mark.slow
def test_the_next_run_delivers_what_a_killed_run_left(orders: ProjectFolder) -> None:
    """A run is killed while its receiver is down; the next run delivers its alert, and then that it is resolved. No log
    contains the secrets of the channel.
    """
    with receiving() as gone:
        url = gone.url
    alerts_to(orders.root, "{{ env_var('SQLSTREAM_SECRET_HOOK') }}", "{failed: true}")
    env = {"SQLSTREAM_SECRET_HOOK": f"{url}?token=hunter2secret"}
    orders.write({"models/failing.sql": FAILING, "models/copies.sql": COPIES})
    process = orders.command("run", env=env)
    lines = wait_for(process, "alerts cannot be delivered to hook (connection refused)")
    os.killpg(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()

    with receiving(int(url.split(":")[2].split("/")[0])) as receiver:
        orders.write({"models/failing.sql": COPIES})
        assert orders.run(env=env).succeeded
        assert receiver.states() == [("failed", "raised"), ("failed", "resolved")]
    assert len({body["alert_id"] for body in receiver.accepted}) == 1
    texts = [*lines, rest, *(path.read_bytes().decode(errors="replace") for path in (orders.root / "logs").iterdir())]
    texts += [path.read_text() for path in (orders.root / "target").glob("*.json")]
    assert not any("hunter2secret" in text for text in texts)


@pytest.mark.slow
def test_a_refused_run_raises_failed(orders: ProjectFolder, receiver: Receiver) -> None:
    """A query that cannot start, because the run is refused, has failed. A run without any rule resolves the alert."""
    without = (orders.root / "project.yml").read_text()
    alerts_to(orders.root, receiver.url, "{failed: true}")
    orders.write({"models/copies.sql": COPIES.replace("select id", "select java_method('java.lang.Nope', 'x') as")})
    assert orders.invoke("run", "--available-now").code == 1
    assert receiver.states() == [("failed", "raised")]
    assert receiver.accepted[0]["model"] == "copies"

    orders.write({"models/copies.sql": COPIES, "project.yml": without})
    assert orders.run().succeeded
    assert changes(orders) == [("failed", "resolved")]


@pytest.mark.slow
def test_a_sink_and_a_command_get_alerts(orders: ProjectFolder, read_json: Callable[..., Any]) -> None:
    """A sink gets a row for each change, and a command gets it as JSON; `debug --alerts` tries both."""
    project = orders.root / "project.yml"
    project.write_text(
        project.read_text() + "alerts:\n  rules: {failed: true}\n  notify:\n    - {name: rows, sink: alerts}\n"
        "    - {name: script, command: [sh, -c, 'cat >> got.jsonl']}\n"
    )
    orders.write(
        {
            "models/failing.sql": FAILING,
            "models/_alerts.yml": "sinks: [{name: alerts, format: json, path: '{{ model.name }}'}]\n",
        }
    )
    assert not orders.run().succeeded
    assert [row["state"] for row in read_json(orders)] == ["raised"]
    assert [json.loads(line)["alert"] for line in (orders.root / "got.jsonl").read_text().splitlines()] == ["failed"]
    assert not [event.text for event in orders.events if isinstance(event, Notice) and "deliver" in event.text]

    tried = orders.invoke("debug", "--alerts")
    assert tried.code == 0, tried.out
    assert [line.split()[:2] for line in tried.out.splitlines()] == [["OK", "rows"], ["OK", "script"]]
    assert sorted(row["state"] for row in read_json(orders)) == ["raised", "test"]


@pytest.fixture
def read_json() -> Callable[[ProjectFolder], list[dict[str, Any]]]:
    """Reads the rows of alerts in the folder of a JSON sink."""

    def read(folder: ProjectFolder) -> list[dict[str, Any]]:
        files = (folder.root / "store" / "sqlstream_alerts").glob("*.json")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    return read
