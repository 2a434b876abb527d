"""How alerts reach real receivers that are slow, down, or answer with errors, and what remains after a run."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from sqlstream.app.alerts.alerts_sink import SinkSender
from sqlstream.app.alerts.alerts_store import ALERTS_FILE, KEEP_SECONDS, AlertStore
from sqlstream.app.alerts.delivery import Delivery, DeliveryError, Outbox, OutboxTexts, Sender
from sqlstream.app.alerts.payloads import RunNames
from sqlstream.app.alerts.webhook import CommandSender, WebhookSender, _retry_after
from sqlstream.project.configuration.alerts import Channel
from sqlstream.project.secret_text import OptionValue, SecretName, SecretText
from sqlstream.spark.secrets import Secrets
from tests.services.alert_receiver import LONGEST_WAIT_SECONDS, Receiver, receiving
from tests.support.stored_alerts import NOW, alert, message, put

SECRET = "SQLSTREAM_SECRET_HOOK"
ENV = {SECRET: "hunter2-token"}
LONG = 1e6
"""A delay that no test waits for."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AlertStore]:
    """An empty store."""
    made = AlertStore(tmp_path / "logs", "local")
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers at once."""
    with receiving() as started:
        yield started


def hook(url: OptionValue, timeout: float = LONGEST_WAIT_SECONDS, **more: object) -> WebhookSender:
    """Returns what posts to a URL."""
    channel = Channel(name="hook", webhook=url, timeout=f"{timeout} seconds", **more)
    return WebhookSender(channel, Secrets(ENV))


@contextmanager
def delivering(store: AlertStore, sender: Sender, first_delay: float = 0.001) -> Iterator[tuple[Delivery, list[str]]]:
    """Delivers the messages for the channel `hook` in the background; the list gets sentences for the user."""
    reported: list[str] = []
    delivery = Delivery("hook", sender, store, reported.append, first_delay)
    delivery.start()
    yield delivery, reported
    delivery.stop()
    delivery.join(LONGEST_WAIT_SECONDS)


def test_messages_arrive_in_order(store: AlertStore, receiver: Receiver) -> None:
    """A receiver gets the messages in their order, each once."""
    put(store, 0)
    with delivering(store, hook(receiver.url)) as (delivery, reported):
        put(store, 1)
        put(store, 0, "resolved")
        delivery.wake()
        receiver.wait(lambda: len(receiver.received) == 3)
    assert [(body["model"], body["state"]) for body in receiver.accepted] == [
        ("orders_0", "raised"),
        ("orders_1", "raised"),
        ("orders_0", "resolved"),
    ]
    assert reported == []
    assert store.count("hook") == 0
    first = receiver.received[0]
    assert first.headers["idempotency-key"] == first.body["id"] == "message0-raised"
    assert first.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [500, 502, 401, 404, 301])
def test_an_error_is_tried_again(store: AlertStore, receiver: Receiver, status: int) -> None:
    """After an error the same message is sent again, the later ones wait, and the user reads about it once."""
    receiver.answers += [(status, {"Location": receiver.url}), (status, {})]
    put(store, 0)
    put(store, 1)
    with delivering(store, hook(receiver.url)) as (_, reported):
        receiver.wait(lambda: len(receiver.accepted) == 2)
    assert [each.body["model"] for each in receiver.received] == ["orders_0"] * 3 + ["orders_1"]
    assert [text.split(" (")[0] for text in reported] == [
        "alerts cannot be delivered to hook",
        "alerts are delivered to hook again",
    ]
    assert f"(status {status}" in reported[0]


def test_a_receiver_that_is_down_gets_the_message_later(store: AlertStore) -> None:
    """A message waits until its receiver listens."""
    with receiving() as gone:
        pass
    put(store)
    reported: list[str] = []
    failed = threading.Event()

    def report(text: str) -> None:
        reported.append(text)
        failed.set()

    delivery = Delivery("hook", hook(gone.url), store, report, 0.001)
    delivery.start()
    assert failed.wait(LONGEST_WAIT_SECONDS)
    with receiving(gone.port) as receiver:
        receiver.wait(lambda: receiver.accepted)
        delivery.stop()
        delivery.join(LONGEST_WAIT_SECONDS)
    assert reported[0] == "alerts cannot be delivered to hook (connection refused); it is tried again"


def test_a_slow_receiver_is_given_up_after_the_timeout(store: AlertStore, receiver: Receiver) -> None:
    """A receiver that does not answer in time counts as failed, and gets the message again."""
    receiver.hang()
    put(store)
    reported: list[str] = []
    delivery = Delivery("hook", hook(receiver.url, timeout=1.0), store, reported.append, 0.001)
    delivery.start()
    receiver.wait(lambda: receiver.waiting >= 2)  # the first one was given up
    receiver.release()
    delivery.stop()
    delivery.join(LONGEST_WAIT_SECONDS)
    assert reported[0] == "alerts cannot be delivered to hook (it did not answer in time); it is tried again"
    assert len({each.body["id"] for each in receiver.received}) == 1


def test_retry_after_is_respected(store: AlertStore, receiver: Receiver) -> None:
    """After 429 nothing is sent before the time that the receiver asks for, not even at the end of the run."""
    receiver.answers.append((429, {"Retry-After": "3600"}))
    put(store)
    with delivering(store, hook(receiver.url)) as (delivery, _):
        receiver.wait(lambda: receiver.received)
        put(store, 1)
        delivery.wake()
    assert len(receiver.received) == 1
    assert store.count("hook") == 2


def test_retry_after_can_be_short_or_a_date() -> None:
    """The header has seconds or a date, is limited to an hour, and other texts do not count."""
    assert _retry_after("0", NOW) == 0
    assert _retry_after(format_datetime(NOW + timedelta(seconds=30), usegmt=True), NOW) == 30
    assert _retry_after(format_datetime(NOW - timedelta(seconds=30), usegmt=True), NOW) == 0
    assert _retry_after("999999", NOW) == 3_600
    assert _retry_after("soon", NOW) is None
    assert _retry_after(None, NOW) is None


def test_a_refused_message_is_dropped(store: AlertStore, receiver: Receiver) -> None:
    """A message that its receiver refuses does not block the later ones."""
    receiver.answers.append((400, {}))
    put(store, 0)
    put(store, 1)
    with delivering(store, hook(receiver.url)) as (_, reported):
        receiver.wait(lambda: receiver.accepted)
    assert [body["model"] for body in receiver.accepted] == ["orders_1"]
    assert reported == ["hook refused an alert (status 400: Bad Request); it is dropped"]


def test_the_end_tries_once_more(store: AlertStore, receiver: Receiver) -> None:
    """The end of a run does not wait for the next attempt, and leaves what does not arrive."""
    receiver.answers += [(500, {}), (500, {})]
    put(store)
    with delivering(store, hook(receiver.url), LONG):
        receiver.wait(lambda: receiver.received)
    assert [each.status for each in receiver.received] == [500, 500]
    assert store.count("hook") == 1


def test_no_text_contains_a_secret(
    store: AlertStore, receiver: Receiver, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The address and the headers get the secrets; messages, logs and the file do not."""
    token = SecretText(("Bearer ", SecretName(SECRET)))
    url = SecretText((f"{receiver.url}?t=", SecretName(SECRET)))
    receiver.answers.append((500, {}))
    put(store)
    with (
        caplog.at_level(logging.DEBUG),
        delivering(store, hook(url, headers={"Authorization": token})) as (_, reported),
    ):
        receiver.wait(lambda: receiver.accepted)
    assert receiver.received[0].headers["authorization"] == "Bearer hunter2-token"
    assert receiver.received[0].path == "/hook?t=hunter2-token"
    texts = [*reported, caplog.text, (tmp_path / "logs" / ALERTS_FILE).read_bytes().decode(errors="replace")]
    assert not [text for text in texts if "hunter2" in text]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://no host/", "http://[", "nothing"])
def test_a_wrong_address_is_an_error_without_the_address(url: str) -> None:
    """A secret with something else than a web address is an error that does not show it."""
    with pytest.raises(DeliveryError) as error:
        hook(SecretText((url,))).send(message())
    assert url not in str(error.value)


def test_slack_and_pagerduty_get_their_forms(receiver: Receiver) -> None:
    """Slack gets text and blocks, PagerDuty events that belong together by their key."""
    hook(receiver.url, format="slack").send(message())
    pager = hook(receiver.url, format="pagerduty", routing_key=SecretText((SecretName(SECRET),)))
    pager.send(message())
    pager.send(message(0, "resolved"))
    slack, trigger, resolve = receiver.accepted
    assert slack["text"] == "Alert: it failed"
    assert [block["type"] for block in slack["blocks"]] == ["section", "context"]
    assert (trigger["routing_key"], trigger["event_action"]) == ("hunter2-token", "trigger")
    assert (trigger["payload"]["severity"], trigger["payload"]["summary"]) == ("critical", "it failed")
    assert resolve["event_action"] == "resolve"
    assert trigger["dedup_key"] == resolve["dedup_key"] == "sqlstream/shop/local/orders_0/failed"


def command(folder: Path, *arguments: str, timeout: float = LONGEST_WAIT_SECONDS) -> CommandSender:
    """Returns what runs a command in a folder."""
    return CommandSender(arguments, folder, os.environ | ENV, timeout, Secrets(ENV))


def test_a_command_gets_the_message(tmp_path: Path) -> None:
    """A command of the project gets JSON on its standard input, and arguments without a shell."""
    script = tmp_path / "notify.sh"
    script.write_text('#!/bin/sh\ncat > got.json\necho "$1" > argument\n')
    script.chmod(0o755)
    assert command(tmp_path, "./notify.sh", "$(id) ; x").send(message()) == "exit code 0"
    assert '"alert": "failed"' in (tmp_path / "got.json").read_text()
    assert (tmp_path / "argument").read_text() == "$(id) ; x\n"


def test_a_command_that_fails_says_why_without_secrets(tmp_path: Path) -> None:
    """The last line of a failed command is the reason, and a missing one is an error as well."""
    with pytest.raises(DeliveryError, match=r"exit code 3: token \*\*\*\*\* is wrong"):
        command(tmp_path, "sh", "-c", f"echo token ${SECRET} is wrong >&2; exit 3").send(message())
    with pytest.raises(DeliveryError) as caught:  # a long line is cut behind the secret, never in it
        command(tmp_path, "sh", "-c", f"printf %0195d 0; echo ${SECRET}; exit 3").send(message())
    assert "hunter" not in str(caught.value)
    with pytest.raises(DeliveryError, match="no such file"):
        command(tmp_path, "./missing").send(message())


def test_a_command_that_hangs_is_killed(tmp_path: Path) -> None:
    """A command is killed after the timeout, with its children."""
    with pytest.raises(DeliveryError, match="did not end in time"):
        command(tmp_path, "sh", "-c", "sleep 1000 & echo $! > child; wait", timeout=1.0).send(message())
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "cmdline"
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while child.exists() and child.read_bytes():  # a zombie has no command line
        assert time.monotonic() < until


def test_a_sink_gets_messages_while_spark_runs(store: AlertStore) -> None:
    """Messages wait until the sink can be written; a repeated one keeps its number."""
    sink = SinkSender(Secrets(ENV))
    written: list[tuple[int, object]] = []
    failures = [ValueError("the table is locked")]

    def write(number: int, rows: object) -> None:
        written.append((number, rows))
        if failures:
            raise failures.pop()

    put(store, 0)
    put(store, 1)
    with delivering(store, sink, LONG) as (delivery, reported):
        sink.attach(write)
        delivery.flush(LONGEST_WAIT_SECONDS)
        delivery.flush(LONGEST_WAIT_SECONDS)
        sink.detach()
    assert [number for number, _ in written] == [0, 0, 1]
    assert "(the table is locked)" in reported[0]
    assert store.count("hook") == 0


def test_the_next_run_takes_over(tmp_path: Path) -> None:
    """What a run leaves belongs to the next run of its target, with the open alerts."""
    first = AlertStore(tmp_path, "local")
    put(first, 0)
    put(first, 1)
    put(first, 1, "resolved")
    first.close()
    other, second = AlertStore(tmp_path, "prod"), AlertStore(tmp_path, "local")
    assert (other.count("hook"), other.open_alerts()) == (0, [])
    assert second.count("hook") == 3
    assert second.open_alerts() == [alert(0)]


KILLED = """
import sys, time
from pathlib import Path
from sqlstream.app.alerts.alerts_store import AlertStore
from tests.support.stored_alerts import put
store = AlertStore(Path(sys.argv[1]), "local")
put(store)
print("stored", flush=True)
time.sleep(1000)
"""


def test_the_messages_of_a_live_run_stay_its_own(tmp_path: Path) -> None:
    """Another run does not send the messages of a run that lives, but does so once that was killed."""
    import subprocess

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stored\n"
        beside = AlertStore(tmp_path, "local")
        assert beside.count("hook") == 0
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert AlertStore(tmp_path, "local").count("hook") == 1


def test_a_run_takes_over_what_a_run_leaves_later(tmp_path: Path, receiver: Receiver) -> None:
    """A run that lives for weeks also sends the messages of a run that ends after its start."""
    store = AlertStore(tmp_path, "local")
    with delivering(store, hook(receiver.url)) as (delivery, _):
        texts = OutboxTexts(RunNames("shop", "local", "run"), str, lambda _: None, lambda _: None)
        outbox = Outbox(store, (delivery,), texts, take_over_seconds=0.01)
        outbox.start()
        left = AlertStore(tmp_path, "local")
        with sqlite3.connect(tmp_path / ALERTS_FILE) as connection:
            values = ["local", "hook", json.dumps(message(3).as_json()), time.time()]
            connection.execute("INSERT INTO outbox (target, channel, message, touched) VALUES (?, ?, ?, ?)", values)
        left.close()
        receiver.wait(lambda: receiver.accepted)
        outbox.end(LONGEST_WAIT_SECONDS)


def test_the_oldest_messages_are_dropped(tmp_path: Path) -> None:
    """A receiver that is down for long gets the newest messages; the others are counted."""
    store = AlertStore(tmp_path, "local", max_pending=2)
    for number in range(5):
        put(store, number)
    pending = store.next("hook")
    assert pending is not None
    assert pending.message.model == "orders_3"
    assert store.dropped == {"hook": 3}


def test_old_messages_are_not_sent(tmp_path: Path) -> None:
    """A run drops what earlier runs left more than a week ago."""
    store = AlertStore(tmp_path, "local")
    put(store, 0)
    put(store, 1)
    with sqlite3.connect(tmp_path / ALERTS_FILE) as connection:
        connection.execute("UPDATE outbox SET touched = touched - ? WHERE number = 1", [KEEP_SECONDS + 60])
    store.close()
    pending = AlertStore(tmp_path, "local").next("hook")
    assert pending is not None
    assert pending.message.model == "orders_1"


def _damage(path: Path) -> None:
    path.write_bytes(b"not a database" * 1_000)


def _future(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("spoil", [_damage, _future])
def test_a_damaged_file_is_set_aside(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """A file that is damaged, or of a later version, is kept under another name, each time under a new one."""
    for _ in range(2):
        AlertStore(tmp_path, "local").close()
        spoil(tmp_path / ALERTS_FILE)
    store = AlertStore(tmp_path, "local")
    assert store.problem is None
    assert "was renamed to alerts.sqlite." in str(store.set_aside)
    put(store)
    assert store.count("hook") == 1
    assert len(list(tmp_path.glob(f"{ALERTS_FILE}.*"))) == 2


def test_numbers_in_memory_are_new(tmp_path: Path) -> None:
    """If the file cannot be written any more, a delivery on its way does not remove a message that came later."""
    store = AlertStore(tmp_path, "local")
    put(store)
    on_its_way = store.next("hook")
    assert on_its_way is not None
    store.use_memory("the disk is full")
    put(store, 1)
    store.remove(on_its_way.number)
    assert (store.count("hook"), store.problem) == (1, "the disk is full")


def test_without_a_file_alerts_are_in_memory(tmp_path: Path) -> None:
    """A folder that cannot be written costs only what outlives the run."""
    (tmp_path / "logs").write_text("a file")
    store = AlertStore(tmp_path / "logs", "local")
    assert store.problem is not None
    put(store)
    assert store.count("hook") == 1
