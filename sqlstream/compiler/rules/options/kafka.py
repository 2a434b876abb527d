"""What a Kafka source or sink refuses of its options taken together (`KafkaSourceProvider.validateGeneralOptions`)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.rules.options.given import GivenOptions
from sqlstream.errors import Finding, Severity
from sqlstream.project.wording import alternatives, quoted

TOPICS = ("subscribe", "subscribePattern", "assign")
"""How a source says what it reads: exactly one of them."""

BEGINNINGS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
"""Where a source begins and ends. Spark looks at the first that is given."""

_BYTES = "Spark reads and writes keys and values as bytes itself"
REFUSED_OF_SOURCES = {
    "kafka.auto.offset.reset": ("Spark itself keeps the offsets", "delete it, and use startingOffsets"),
    "kafka.enable.auto.commit": ("Spark itself keeps the offsets", "delete it"),
    "kafka.interceptor.classes": ("Spark cannot work with rows that an interceptor has changed", "delete it"),
    "kafka.key.deserializer": (_BYTES, "delete it, and cast `key` in a model"),
    "kafka.value.deserializer": (_BYTES, "delete it, and cast `value` in a model"),
}
REFUSED_OF_SINKS = {
    "kafka.key.serializer": (_BYTES, "delete it, and give `key` as string or binary"),
    "kafka.value.serializer": (_BYTES, "delete it, and give `value` as string or binary"),
}
"""Options of Kafka's own with which Spark starts nothing: why, and what to do."""


def kafka_problems(given: GivenOptions) -> Iterator[Finding]:
    """Gives what Spark refuses of the options of a Kafka source or sink, and which of them it ignores."""
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
            what = f"{given.what} has the option {quoted(name)}, which Spark refuses"
            yield Finding("invalid-value", what, why, fix, given.place(name))


def _topics(given: GivenOptions) -> Iterator[Finding]:
    found = [name for name in TOPICS if given.has(name)]
    if not found:
        yield Finding(
            "missing-key",
            f"{given.what} says no topic",
            f"Spark needs one of the options {alternatives(TOPICS)} from a source of format kafka",
            "add options: {subscribe: my_topic} to the table",
            given.location,
        )
    for name in found[1:]:
        yield Finding(
            "invalid-value",
            f"{given.what} has both of the options {quoted(found[0])} and {quoted(name)}",
            f"Spark takes only one of {', '.join(TOPICS)}",
            "delete one of them",
            given.place(name),
        )


def _first_of(given: GivenOptions, names: tuple[str, ...]) -> Iterator[Finding]:
    found = [name for name in names if given.has(name)]
    for name in found[1:]:
        yield Finding(
            "unknown-option",
            f"{given.what} has the option {quoted(name)} beside {quoted(found[0])}, and so it has no effect",
            f"Spark looks at the first that is given of {', '.join(names)}",
            "delete one of them",
            given.place(name),
            severity=Severity.WARNING,
        )


def _ends(given: GivenOptions) -> Iterator[Finding]:
    if given.mode != "batch":
        return
    yield from _first_of(given, ENDS)
    if (given.text("startingOffsets") or "").strip().lower() == "latest" and not any(map(given.has, BEGINNINGS[:2])):
        yield Finding(
            "invalid-value",
            f"{given.what} is a batch that begins at the latest offset",
            "there would be nothing to read, and Spark refuses it",
            "write startingOffsets: earliest, or leave it out",
            given.place("startingOffsets"),
        )


def _bounds(given: GivenOptions) -> Iterator[Finding]:
    least, most = given.text("minOffsetsPerTrigger") or "", given.text("maxOffsetsPerTrigger") or ""
    if given.streams and least.isdecimal() and most.isdecimal() and int(least[:20]) > int(most[:20]):
        yield Finding(
            "invalid-value",
            f"{given.what} has a minOffsetsPerTrigger of {least} and a maxOffsetsPerTrigger of {most}",
            "Spark refuses a minimum above the maximum",
            "lower the one, or raise the other",
            given.place("minOffsetsPerTrigger"),
        )
