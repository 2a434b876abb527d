"""Conflicts between the options of a Kafka source or sink (`KafkaSourceProvider.validateGeneralOptions`)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.rules.options.given import GivenOptions
from sqlstream.errors import Finding, Severity
from sqlstream.project.wording import alternatives, quoted

TOPICS = ("subscribe", "subscribePattern", "assign")
"""The options that name the topics. A source needs exactly one of them."""

BEGINNINGS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
"""The options for the start and the end of a source. Spark uses the first option that is set."""

_BYTES = "Spark serializes and deserializes keys and values itself"
REFUSED_OF_SOURCES = {
    "kafka.auto.offset.reset": ("Spark tracks the offsets itself", "remove it, and use startingOffsets"),
    "kafka.enable.auto.commit": ("Spark tracks the offsets itself", "remove it"),
    "kafka.interceptor.classes": ("Spark cannot handle rows that an interceptor has changed", "remove it"),
    "kafka.key.deserializer": (_BYTES, "remove it, and cast `key` in a model"),
    "kafka.value.deserializer": (_BYTES, "remove it, and cast `value` in a model"),
}
REFUSED_OF_SINKS = {
    "kafka.key.serializer": (_BYTES, "remove it, and select `key` as string or binary"),
    "kafka.value.serializer": (_BYTES, "remove it, and select `value` as string or binary"),
}
"""Options of Kafka's client that Spark refuses: why, and what to do."""


def kafka_problems(given: GivenOptions) -> Iterator[Finding]:
    """Yields the options of a Kafka source or sink that Spark refuses or ignores because of the others."""
    yield from _refused(given)
    if given.is_source:
        yield from _topics(given)
        yield from _first_of(given, BEGINNINGS)
        yield from _ends(given)
        yield from _bounds(given)


def _refused(given: GivenOptions) -> Iterator[Finding]:
    refused = REFUSED_OF_SOURCES if given.is_source else REFUSED_OF_SINKS
    for name, (why, fix) in refused.items():
        if given.has(name):
            what = f"{given.what} sets the option {quoted(name)}, which Spark does not allow"
            yield Finding("option-value", what, why, fix, given.place(name))


def _topics(given: GivenOptions) -> Iterator[Finding]:
    found = [name for name in TOPICS if given.has(name)]
    if not found:
        yield Finding(
            "missing-key",
            f"{given.what} names no topic",
            f"a source of format kafka needs one of the options {alternatives(TOPICS)}",
            "add options: {subscribe: my_topic} to the table",
            given.location,
        )
    for name in found[1:]:
        yield Finding(
            "option-value",
            f"{given.what} sets both {quoted(found[0])} and {quoted(name)}",
            f"Spark accepts only one of {', '.join(TOPICS)}",
            "remove one of them",
            given.place(name),
        )


def _first_of(given: GivenOptions, names: tuple[str, ...]) -> Iterator[Finding]:
    found = [name for name in names if given.has(name)]
    for name in found[1:]:
        yield Finding(
            "unknown-option",
            f"{given.what} sets both {quoted(found[0])} and {quoted(name)}, so {quoted(name)} has no effect",
            f"Spark uses the first one that is set of {', '.join(names)}",
            "remove one of them",
            given.place(name),
            severity=Severity.WARNING,
        )


def _ends(given: GivenOptions) -> Iterator[Finding]:
    if given.mode != "batch":
        return
    yield from _first_of(given, ENDS)
    if given.text("startingOffsets").strip().lower() == "latest" and not any(map(given.has, BEGINNINGS[:2])):
        yield Finding(
            "option-value",
            f"{given.what} is a batch source that starts at the latest offset",
            "the query would have no data to read, and Spark does not allow it",
            "use startingOffsets: earliest, or remove the option",
            given.place("startingOffsets"),
        )


def _bounds(given: GivenOptions) -> Iterator[Finding]:
    least, most = given.text("minOffsetsPerTrigger"), given.text("maxOffsetsPerTrigger")
    if given.streams and least.isdecimal() and most.isdecimal() and int(least[:20]) > int(most[:20]):
        yield Finding(
            "option-value",
            f"{given.what} sets minOffsetsPerTrigger to {least} and maxOffsetsPerTrigger to {most}",
            "the minimum must not exceed the maximum",
            "lower the minimum, or raise the maximum",
            given.place("minOffsetsPerTrigger"),
        )
