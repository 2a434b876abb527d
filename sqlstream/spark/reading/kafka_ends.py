"""The first and the last offsets of Kafka topics, asked with the client that Spark's connector brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import java_class

TIMEOUT_SECONDS = 15
"""The time that each question to the brokers may take."""

_PREFIX = "kafka."
_OFFSETS = dict[str, dict[str, int]]


def first_and_end_offsets(
    session: SparkSession, options: Mapping[str, str], topics: Iterable[str]
) -> tuple[_OFFSETS, _OFFSETS]:
    """Returns the first and the end offset of each partition of `topics`, by topic and partition. A topic that no
    longer exists has none. `options` are those of the source, with resolved secrets.

    Reads no records and joins no consumer group. With `kafka.isolation.level: read_committed`, the end is before the
    first open transaction, as for Spark. Raises: Spark's errors.
    """
    java = _Java(session)
    with _consumer(java, options) as consumer:
        partitions = [part for topic in topics for part in consumer.partitionsFor(topic, java.timeout) or ()]
        asked = java.list(java.partition(part.topic(), part.partition()) for part in partitions)
        first = consumer.beginningOffsets(asked, java.timeout)
        end = consumer.endOffsets(asked, java.timeout)
        return _by_topic(first), _by_topic(end)


class _Java:
    """The classes of the JVM that the questions need."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.partition = java_class(session, "org.apache.kafka.common.TopicPartition")
        self.timeout = java_class(session, "java.time.Duration").ofSeconds(TIMEOUT_SECONDS)

    def consumer(self, settings: Mapping[str, str]) -> Any:
        given = java_class(self._session, "java.util.HashMap")()
        for name, value in settings.items():
            given.put(name, value)
        bytes_of = java_class(self._session, "org.apache.kafka.common.serialization.ByteArrayDeserializer")
        return java_class(self._session, "org.apache.kafka.clients.consumer.KafkaConsumer")(
            given, bytes_of(), bytes_of()
        )

    def list(self, items: Iterable[Any]) -> Any:
        found = java_class(self._session, "java.util.ArrayList")()
        for item in items:
            found.add(item)
        return found


@contextmanager
def _consumer(java: _Java, options: Mapping[str, str]) -> Iterator[Any]:
    settings = {name[len(_PREFIX) :]: value for name, value in options.items() if name.lower().startswith(_PREFIX)}
    consumer = java.consumer({**settings, "enable.auto.commit": "false", "allow.auto.create.topics": "false"})
    try:
        yield consumer
    finally:
        consumer.close()


def _by_topic(offsets: Any) -> _OFFSETS:
    found: _OFFSETS = {}
    for entry in offsets.entrySet():
        part = entry.getKey()
        found.setdefault(part.topic(), {})[str(part.partition())] = int(entry.getValue())
    return found
