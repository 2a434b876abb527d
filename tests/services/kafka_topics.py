"""Topics of a test broker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PARTITIONS = 2


@dataclass(frozen=True)
class Message:
    """One message. `timestamp` is in milliseconds, and 0 for the current time."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 0


@dataclass(frozen=True)
class Record:
    """One record of a topic."""

    key: bytes | None
    value: bytes | None
    headers: tuple[object, ...] = ()


@dataclass(frozen=True)
class Topic:
    """One topic of the broker."""

    servers: str
    name: str

    def send_bytes(self, messages: Sequence[Message]) -> None:
        """Writes messages in order, and returns when the broker has all of them."""
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for message in messages:
            producer.produce(
                self.name,
                key=message.key,
                value=message.value,
                partition=message.partition,
                headers=list(message.headers),
                timestamp=message.timestamp,
            )
            producer.poll(0)
        assert producer.flush(60) == 0

    def send(self, rows: Sequence[dict[str, Any]]) -> None:
        """Writes each row as JSON, with its `id` as the key, and returns when the broker has all of them."""
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for row in rows:
            producer.produce(self.name, key=str(row["id"]), value=json.dumps(row))
        assert producer.flush(60) == 0

    def delete_records(self) -> None:
        """Deletes everything that the topic holds, as its retention does after some time."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        ends = [TopicPartition(self.name, partition, OFFSET_END) for partition in range(PARTITIONS)]
        for deleted in admin.delete_records(ends).values():
            deleted.result(60)

    def next_records(self, count: int) -> list[Record]:
        """Waits until the topic has `count` records, and returns the first ones, in any order."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "tests", "log_level": 0})
        consumer.assign([TopicPartition(self.name, number, 0) for number in range(PARTITIONS)])
        messages = consumer.consume(count, timeout=100)
        consumer.close()
        assert len(messages) == count
        return [Record(message.key(), message.value()) for message in messages]

    def records(self) -> list[Record]:
        """Returns all records that the topic has now, in the order of partitions and offsets."""
        settings = {"bootstrap.servers": self.servers, "group.id": "tests", "enable.auto.commit": False, "log_level": 0}
        consumer = Consumer(settings)
        partitions = consumer.list_topics(self.name, timeout=60).topics[self.name].partitions
        found = [record for number in sorted(partitions) for record in self._read(consumer, number)]
        consumer.close()
        return found

    def _read(self, consumer: Consumer, number: int) -> list[Record]:
        first, end = consumer.get_watermark_offsets(TopicPartition(self.name, number), timeout=60)
        consumer.assign([TopicPartition(self.name, number, first)])
        messages: list[Any] = []
        while len(messages) < end - first:
            found = consumer.consume(end - first - len(messages), timeout=60)
            assert found
            messages += found
        return [Record(message.key(), message.value(), tuple(message.headers() or ())) for message in messages]


def create_topic(servers: str, name: str, partitions: int = PARTITIONS, /, **config: str) -> Topic:
    """Creates a topic, which by default keeps messages with old timestamps."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config={"retention.ms": "-1", **config})
    for created in admin.create_topics([topic]).values():
        created.result(60)
    return Topic(servers, name)


def replace_topic(topic: Topic) -> None:
    """Deletes a topic and creates it again, empty."""
    admin = AdminClient({"bootstrap.servers": topic.servers, "log_level": 0})
    for deleted in admin.delete_topics([topic.name], operation_timeout=60).values():
        deleted.result(60)
    while topic.name in admin.list_topics(timeout=60).topics:  # the brokers have accepted it, but not all have done it
        pass
    create_topic(topic.servers, topic.name)
