"""Events into a Kafka topic at a steady rate, and the times of the broker from events to rows."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.nexmark.generator import events

TICK_SECONDS = 0.005
POLL_SECONDS = 0.1
IDLE_SECONDS = 2.0
READ_SECONDS = 120.0

AT_ONCE = 50_000
"""The number of events to generate at once: Arrow divides longer arrays of texts into pieces, which make no structs."""


def messages(count: int, seed: int, rate: int) -> list[bytes]:
    """Returns events as JSON. Each bid is on another auction, which leads from a row to its event."""
    found: list[bytes] = []
    for first in range(0, count, AT_ONCE):
        for row in events(first, min(AT_ONCE, count - first), seed, rate).to_pylist():
            if row["bid"]:
                row["bid"]["auction"] = len(found)
            found.append(json.dumps(_without_nulls(row), default=str).replace("+00:00", "Z").encode())
    return found


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


@contextmanager
def feed(servers: str, topic: str, sent: Sequence[bytes], rate: int) -> Iterator[None]:
    """Sends the messages in the background, `rate` in a second, until the end of the context."""
    ended = threading.Event()
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})

    def send() -> None:
        began, done = time.monotonic(), 0
        while not ended.wait(TICK_SECONDS) and done < len(sent):
            due = min(int((time.monotonic() - began) * rate), len(sent))
            for message in sent[done:due]:
                producer.produce(topic, message)
            producer.poll(0)
            done = due
        producer.flush(60)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wait_for_rows(servers: str, topic: str, check: Callable[[], None]) -> None:
    """Waits until the topic has a record. Calls `check` now and then, which raises if it is in vain."""
    while not _size(servers, topic):
        check()
        time.sleep(POLL_SECONDS)


def wait_for_rows_since(servers: str, topics: tuple[str, str], since: float, check: Callable[[], None]) -> None:
    """Waits for the row of an event that the broker got at `since` or later: then those of earlier events are there."""
    while not latencies(servers, topics, since, math.inf):
        check()
        time.sleep(IDLE_SECONDS)


def wait_until_idle(servers: str, topic: str) -> None:
    """Waits until the topic gets no more records."""
    size = -1
    while size != (size := _size(servers, topic)):
        time.sleep(IDLE_SECONDS)


def latencies(servers: str, topics: tuple[str, str], since: float, until: float) -> list[int]:
    """Returns the ms from each event that the broker got between two times, in seconds since 1970, to its row."""
    rows = list(_records(servers, topics[1]))  # first: while it reads, new events get rows
    sent = {value["bid"]["auction"]: at for at, value in _records(servers, topics[0]) if "bid" in value}
    times = ((at, sent[value["auction"]]) for at, value in rows)
    return [at - began for at, began in times if since <= began / 1000 < until]


def _records(servers: str, topic: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the time of the broker in ms, and the value, of each record that a topic has now."""
    with _consumer(servers) as consumer:
        ends = {number: end for number, end in _ends(consumer, topic).items() if end}
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        until = time.monotonic() + READ_SECONDS
        while ends:
            found = consumer.consume(10_000, timeout=POLL_SECONDS)  # it waits as long for fewer records
            problem = next(filter(None, (message.error() for message in found)), None)
            if problem or time.monotonic() > until:
                raise SystemExit(f"the records of {topic} cannot be read: {problem or 'it takes too long'}")
            for message in found:
                number, offset = message.partition() or 0, message.offset() or 0
                if number in ends:  # otherwise new, while another partition is still read
                    yield message.timestamp()[1], json.loads(message.value() or b"{}")
                    if offset + 1 >= ends[number]:
                        del ends[number]


def _size(servers: str, topic: str) -> int:
    with _consumer(servers) as consumer:
        return sum(_ends(consumer, topic).values())


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    """Returns the number of records in each partition."""
    numbers = _partitions(consumer, topic)
    return {each: consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=60)[1] for each in numbers}


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    return sorted(consumer.list_topics(topic, timeout=60).topics[topic].partitions)


@contextmanager
def _consumer(servers: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "nexmark", "log_level": 0})
    try:
        yield consumer
    finally:
        consumer.close()
