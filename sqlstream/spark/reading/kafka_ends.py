"""Kafka's topics, their ids, and the offsets and times of their records, asked with the client of Spark's connector."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import JVM_ERRORS, SPARK_ERRORS, causes_of, java_class

TIMEOUT_SECONDS = 15
"""The time that each question to the brokers may take."""

_TIMEOUTS = ("request.timeout.ms", "default.api.timeout.ms")
"""Settings of the admin client; the second cannot be smaller than the first."""

_FIRST_LONG = 2**31
"""The first number that becomes a Long of Java, which Kafka needs. As a time it is in January 1970."""

UNKNOWN_TOPIC = ".UnknownTopicOrPartitionException"
"""The end of the name of Kafka's error about a topic that does not exist."""

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of a topic of a broker that gives topics no ids (`Uuid.ZERO_UUID`)."""

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


def offsets_at(
    session: SparkSession, options: Mapping[str, str], partitions: Mapping[str, Iterable[str]], time_ms: int
) -> _OFFSETS:
    """Returns the offset of the first record of each partition whose timestamp is not before `time_ms` (ms since 1970),
    by topic and partition. A partition without such a record has none. Reads no records. Raises: Spark's errors.
    """
    java = _Java(session)
    with _consumer(java, options) as consumer:
        times = java_class(session, "java.util.HashMap")()
        for topic, numbers in partitions.items():
            for number in numbers:
                times.put(java.partition(topic, int(number)), max(time_ms, _FIRST_LONG))
        found: _OFFSETS = {}
        for entry in consumer.offsetsForTimes(times, java.timeout).entrySet():
            if entry.getValue() is not None:
                part = entry.getKey()
                found.setdefault(part.topic(), {})[str(part.partition())] = int(entry.getValue().offset())
        return found


def newest_record_ms(session: SparkSession, options: Mapping[str, str]) -> int | None:
    """Returns the timestamp of the newest record that a source with these `options` would read (ms since 1970), None
    without records.

    The brokers know it (from Kafka 3.0 on), so this reads no records. Raises: Spark's errors.
    """
    java = _Java(session)
    with _consumer(java, options) as consumer:
        partitions = list(_subscribed(java, consumer, _lowered(options)))
    latest = java_class(session, "org.apache.kafka.clients.admin.OffsetSpec").maxTimestamp()
    asked = java_class(session, "java.util.HashMap")()
    for topic, number in partitions:
        asked.put(java.partition(topic, number), latest)
    with _admin(java, options) as admin:
        found = admin.listOffsets(asked).all().get()
        times = [int(entry.getValue().timestamp()) for entry in found.entrySet()]
    return max((time for time in times if time >= 0), default=None)  # -1: no record


@dataclass(frozen=True)
class FoundTopics:
    """The partitions of each topic that a source or sink names (0: it does not exist), and some other topics if one
    does not exist. `creates_topics`: the broker creates a topic at its first record, None if it does not say.
    """

    topics: Mapping[str, int]
    others: tuple[str, ...] = ()
    creates_topics: bool | None = None


def describe_topics(session: SparkSession, options: Mapping[str, str]) -> FoundTopics:
    """Returns what the brokers say about the topics of a source or sink with these `options`.

    Creates no topic. Raises: Spark's errors.
    """
    java, names = _Java(session), _lowered(options)
    listed = ",".join(names.get(option, "") for option in ("subscribe", "topic")).split(",")
    assigned: Iterable[str] = json.loads(names.get("assign", "{}"))
    with _consumer(
        java, {**options, **{_PREFIX + name: str(TIMEOUT_SECONDS * 1000) for name in _TIMEOUTS}}
    ) as consumer:
        found = Counter(topic for topic, _ in _subscribed(java, consumer, names) if "subscribepattern" in names)
        for topic in (*(name.strip() for name in listed if name.strip()), *assigned):
            found[topic] = len(consumer.partitionsFor(topic, java.timeout) or ())
        # names of other topics are only needed for a suggestion
        if found and all(found.values()):
            return FoundTopics(found)
        known = sorted(str(entry.getKey()) for entry in consumer.listTopics(java.timeout).entrySet())
    return FoundTopics(
        found, tuple(name for name in known if not name.startswith("__")), _creates_topics(java, options)
    )


def _creates_topics(java: _Java, options: Mapping[str, str]) -> bool | None:
    """Returns whether the first broker creates topics at their first record, None if it does not say."""
    with _admin(java, options) as admin, suppress(*JVM_ERRORS):  # the login may not read the broker's settings
        node = admin.describeCluster().nodes().get().iterator().next().idString()
        resource = java.config_resource(node)
        settings = admin.describeConfigs(java.list([resource])).all().get().get(resource)
        return str(settings.get("auto.create.topics.enable").value()) == "true"
    return None


def topic_ids(session: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the ids that brokers give new topics, for the topics that a source with these `options` reads now.

    A topic that does not exist has none, nor has any of brokers before Kafka 2.8. Raises: Spark's errors.
    """
    java, found = _Java(session), dict[str, str]()
    with _admin(java, options) as admin:
        topics = _topics(java, lambda: admin.listTopics().names().get(), _lowered(options))
        for entry in admin.describeTopics(java.list(topics)).topicNameValues().entrySet():
            try:
                found[str(entry.getKey())] = str(entry.getValue().get().topicId().toString())
            except SPARK_ERRORS as error:
                if not any(cause.kind.endswith(UNKNOWN_TOPIC) for cause in causes_of(error)):
                    raise
    return {topic: number for topic, number in found.items() if number != _NO_ID}


def _subscribed(java: _Java, consumer: Any, options: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yields the partitions that Spark would read with these options, whose names are in lower case."""
    if "assign" in options:
        assigned: Mapping[str, list[int]] = json.loads(options["assign"])
        yield from ((topic, number) for topic, numbers in assigned.items() for number in numbers)
        return
    for topic in _topics(java, lambda: consumer.listTopics(java.timeout).keySet(), options):
        yield from ((topic, part.partition()) for part in consumer.partitionsFor(topic, java.timeout) or ())


def _topics(java: _Java, list_all: Callable[[], Iterable[str]], options: Mapping[str, str]) -> list[str]:
    """Returns the topics that Spark would read with these options, whose names are in lower case."""
    if "assign" in options:
        return list(json.loads(options["assign"]))
    if "subscribepattern" in options:
        pattern = java.pattern(options["subscribepattern"])
        return [name for name in list_all() if pattern.matcher(name).matches()]
    return [name.strip() for name in options.get("subscribe", "").split(",") if name.strip()]


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


class _Java:
    """The classes of the JVM that the questions need."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.partition = java_class(session, "org.apache.kafka.common.TopicPartition")
        self.timeout = java_class(session, "java.time.Duration").ofSeconds(TIMEOUT_SECONDS)

    def map(self, settings: Mapping[str, str]) -> Any:
        given = java_class(self._session, "java.util.HashMap")()
        for name, value in settings.items():
            given.put(name, value)
        return given

    def config_resource(self, broker: str) -> Any:
        kinds = java_class(self._session, "org.apache.kafka.common.config.ConfigResource$Type")
        resource = java_class(self._session, "org.apache.kafka.common.config.ConfigResource")
        return resource(kinds.BROKER, broker)

    def admin(self, settings: Mapping[str, str]) -> Any:
        return java_class(self._session, "org.apache.kafka.clients.admin.AdminClient").create(self.map(settings))

    def pattern(self, text: str) -> Any:
        return java_class(self._session, "java.util.regex.Pattern").compile(text)

    def consumer(self, settings: Mapping[str, str]) -> Any:
        bytes_of = java_class(self._session, "org.apache.kafka.common.serialization.ByteArrayDeserializer")
        return java_class(self._session, "org.apache.kafka.clients.consumer.KafkaConsumer")(
            self.map(settings), bytes_of(), bytes_of()
        )

    def list(self, items: Iterable[Any]) -> Any:
        found = java_class(self._session, "java.util.ArrayList")()
        for item in items:
            found.add(item)
        return found


@contextmanager
def _consumer(java: _Java, options: Mapping[str, str]) -> Iterator[Any]:
    consumer = java.consumer(
        # asking for a topic must not create it, as brokers do by default
        {**_client_settings(options), "enable.auto.commit": "false", "allow.auto.create.topics": "false"}
    )
    try:
        yield consumer
    finally:
        consumer.close()


@contextmanager
def _admin(java: _Java, options: Mapping[str, str]) -> Iterator[Any]:
    timeouts = dict.fromkeys(_TIMEOUTS, str(TIMEOUT_SECONDS * 1000))
    admin = java.admin({**_client_settings(options), **timeouts})
    try:
        yield admin
    finally:
        admin.close()


def _client_settings(options: Mapping[str, str]) -> dict[str, str]:
    return {name[len(_PREFIX) :]: value for name, value in options.items() if name.lower().startswith(_PREFIX)}


def _by_topic(offsets: Any) -> _OFFSETS:
    found: _OFFSETS = {}
    for entry in offsets.entrySet():
        part = entry.getKey()
        found.setdefault(part.topic(), {})[str(part.partition())] = int(entry.getValue())
    return found
