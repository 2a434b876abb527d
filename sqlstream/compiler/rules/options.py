"""Rules about options of sources and sinks: unknown names, wrong values, missing and conflicting options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import Problem, Problems, rule, terminal_models
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.formats.file_options import CHANGE_FEED
from sqlstream.project.formats.format import BATCH, STREAM, Format
from sqlstream.project.formats.formats import MESSAGES, format_of
from sqlstream.project.formats.option_types import CHARSET, MODE, PATTERN, OptionType
from sqlstream.project.messages.message_format import PROTOBUF
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.wording import alternatives, nearest, quoted, quoted_list


@dataclass(frozen=True)
class GivenOptions:
    """The options of a source or sink, with their locations. `what` is its name in messages. `mode` is the mode of a
    source, and empty for a sink. `key` is the key of the options in YAML.
    """

    what: str
    format: Format
    options: Mapping[str, OptionValue]
    locations: Mapping[str, Location]
    location: Location
    mode: str = ""
    key: str = "options"

    @property
    def is_source(self) -> bool:
        """Whether it is a source."""
        return bool(self.mode)

    @property
    def streams(self) -> bool:
        """Whether it is a streaming source."""
        return self.mode == STREAM

    def written(self, name: str) -> str | None:
        """Returns the option `name` in the letter case of the file; None if it is not given."""
        return next((key for key in self.options if key.lower() == name.lower()), None)

    def has(self, name: str) -> bool:
        """Returns whether the option `name` is given, in any letter case."""
        return self.written(name) is not None

    def text(self, name: str) -> str:
        """Returns the value of an option; empty if it is not given or holds a secret."""
        value = self.options.get(self.written(name) or "")
        return value if isinstance(value, str) else ""

    def location_of(self, name: str) -> Location:
        """Returns the location of the option `name`."""
        written = self.written(name) or name
        return self.locations.get(f"{self.key}.{written}", self.locations.get(self.key, self.location))


def given_options(compiled: CompiledProject) -> Iterator[GivenOptions]:
    """Yields the options of each source and sink, and of each model that adds options to its sink."""
    for table in declared_sources(compiled.project.sources):
        what, facts = f"source `{table.full_name}`", format_of(table.format)
        yield GivenOptions(what, facts, table.options, table.locations, table.location, table.mode)
        if table.messages is not None and (table.messages.options or table.messages.value_format == PROTOBUF):
            messages = table.messages
            facts = MESSAGES.get(messages.value_format) or Format(messages.value_format, lists_all_options=True)
            yield GivenOptions(
                what, facts, messages.options, table.locations, table.location, table.mode, key="value_options"
            )
    places = {sink.name: sink.locations for sink in compiled.project.sinks}
    seen: set[str] = set()
    for model, output in (*terminal_models(compiled), *((None, output) for output in compiled.unused_outputs)):
        own = {f"options.{name}": model.location_of("options") for name in model.config.options} if model else {}
        # A model without options adds nothing to those of its sink, so the sink is checked once.
        if own or output.sink not in seen:
            merged = {**places.get(output.sink, {}), **own}
            what, facts = f"sink `{output.sink}`", format_of(output.format)
            yield GivenOptions(what, facts, output.options, merged, output.location)
        if not own:
            seen.add(output.sink)


def has_path_option(names: Iterable[str]) -> bool:
    """Returns whether one of the options `names` is the path."""
    return any(name.lower() == "path" for name in names)


NEAR = 0.8
"""The lowest similarity (1.0: equal) at which an option counts as a misspelling of a known one."""

LENIENT = {
    "spark.sql.legacy.javaCharsets": CHARSET,
    "spark.sql.legacy.timeParserPolicy": PATTERN,
}
"""Settings of a target that let Spark accept more values for options of a type."""


@rule("unknown-option", severity=Severity.WARNING)
def ignored_options(compiled: CompiledProject) -> Problems:
    """Spark ignores unknown options and options without effect. Names with a dot configure the file system."""
    for given in given_options(compiled):
        yield from _unknown(given)
        yield from _without_effect(given)


@rule("option-value")
def option_values(compiled: CompiledProject) -> Problems:
    """Spark reads most option values only after a query has started."""
    for given in given_options(compiled):
        yield from _wrong_values(given, compiled.project.target)


@rule("missing-key", "option-value", "unknown-option")
def required_options(compiled: CompiledProject) -> Problems:
    """Some sources need certain options, and some options need or exclude each other."""
    for given in given_options(compiled):
        yield from _missing(given)
        yield from _conflicts(given)


def _unknown(given: GivenOptions) -> Problems:
    names = given.format.option_names(given.mode)
    if names is None:
        return
    known, prefix = {name.lower() for name in names}, given.format.client_prefix
    for name in given.options:
        is_of_client = name.lower().startswith(prefix) if prefix else "." in name
        if name.lower() in known or is_of_client:
            continue
        close = nearest(name, sorted(names), 1, likeness=NEAR) or ((f"{prefix}{name}",) if "." in name else ())
        yield Problem(
            f"{given.what} sets {quoted(name)}, which is not an option of Spark's {given.format.name} format",
            "Spark silently ignores unknown options",
            f"did you mean {alternatives(close)}?"
            if close
            else "remove it, or check its name in the Spark documentation",
            given.location_of(name),
        )


def _without_effect(given: GivenOptions) -> Problems:
    """Yields the options of streams in a batch source, and the options of batches in a stream."""
    other = BATCH if given.streams else STREAM
    for name, option in sorted(given.format.options.items(), key=lambda item: item[0]) if given.is_source else ():
        if option.use == other and given.has(name):
            yield Problem(
                f"{given.what} is a {given.mode} source, so the option {quoted(name)} has no effect",
                f"Spark uses this option only when the source is read as a {other}",
                f"remove it, or set mode: {other}",
                given.location_of(name),
            )


def _wrong_values(given: GivenOptions, target: Target) -> Problems:
    for name, value in given.options.items():
        taken = given.format.values_of(name, streams=given.streams)
        is_lenient = any(key in target.spark and type_ is taken for key, type_ in LENIENT.items())
        if taken is None or is_lenient or not isinstance(value, str) or taken.accepts(value):
            continue
        yield Problem(
            f"{given.what} sets the option {quoted(name)} to {quoted(value)}",
            f"Spark expects {taken.words}" + (", and silently accepts anything else" if taken is MODE else ""),
            _corrected(taken, value),
            given.location_of(name),
        )


def _corrected(taken: OptionType, value: str) -> str:
    """Returns the fix for a wrong value: a similar keyword, or what the option accepts."""
    close = nearest(value, taken.keywords, 1)
    return f"did you mean {alternatives(close)}?" if close else f"use {taken.words}"


def _missing(given: GivenOptions) -> Iterator[Finding]:
    kind, place = ("source", "the table") if given.is_source else ("sink", "the sink")
    for option in given.format.required if given.is_source or given.format.writes else ():
        if not given.has(option.name):
            yield Finding(
                "missing-key",
                f"{given.what} needs the option {option.name}",
                f"a {kind} of format {given.format.name} needs it: {option.meaning}",
                f"add {given.key}: {{{option.example}}} to {place}",
                given.location,
            )


SPLIT_BY = ("partitionColumn", "lowerBound", "upperBound")
"""Options of a JDBC source that need each other and numPartitions, which does not need them."""


def _conflicts(given: GivenOptions) -> Iterator[Finding]:
    """Yields the conflicts between the options of a source or sink."""
    if given.streams:
        yield from _refused_in_streams(given)
        yield from _file_streams(given)
    if given.format.name == "jdbc":
        yield from _jdbc_problems(given)
    if given.format.name == "kafka":
        yield from _kafka_problems(given)
    if given.format.is_table:
        yield from _lake_problems(given)


def _refused_in_streams(given: GivenOptions) -> Iterator[Finding]:
    for name, option in given.format.options.items():
        if option.use == "batch_only" and given.has(name):
            yield Finding(
                "option-value",
                f"{given.what} is a stream with the option {name}",
                "Spark supports this option only for static tables",
                "remove it, or set mode: batch"
                + ("; to choose files, use pathGlobFilter" if given.format.is_file else ""),
                given.location_of(name),
            )


def _file_streams(given: GivenOptions) -> Iterator[Finding]:
    if given.has("maxFilesPerTrigger") and given.has("maxBytesPerTrigger"):
        yield Finding(
            "option-value",
            f"{given.what} sets both maxFilesPerTrigger and maxBytesPerTrigger",
            "Spark limits a batch by only one of them",
            "remove one of them",
            given.location_of("maxBytesPerTrigger"),
        )
    if given.text("cleanSource").lower() == "archive" and not given.has("sourceArchiveDir"):
        yield Finding(
            "missing-key",
            f"{given.what} archives the files it has read, but sets no sourceArchiveDir",
            "Spark moves the files to that folder, and does not start without it",
            "set sourceArchiveDir to a folder outside the path, or use cleanSource: off",
            given.location_of("cleanSource"),
        )


def _jdbc_problems(given: GivenOptions) -> Iterator[Finding]:
    table, query = given.has("dbtable"), given.is_source and given.has("query")
    if table == query:
        yield Finding(
            "option-value" if table else "missing-key",
            f"{given.what} has {'both of the options dbtable and query' if table else 'no option dbtable'}",
            "Spark reads one table or one query from a database, and writes one table",
            "remove one of them" if table else "add options: {dbtable: schema.table}",
            given.location_of("query") if table else given.location,
        )
    split = [name for name in SPLIT_BY if given.has(name)]
    missing = [name for name in (*SPLIT_BY, "numPartitions") if not given.has(name)]
    if given.is_source and split and missing:
        yield Finding(
            "missing-key",
            f"{given.what} sets the option {quoted(split[0])} without {quoted_list(missing)}",
            "Spark splits the table into ranges of the column, and needs all of these options or none",
            f"add the missing options, or remove {quoted_list(split)}",
            given.location_of(split[0]),
        )


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


def _kafka_problems(given: GivenOptions) -> Iterator[Finding]:
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
            yield Finding("option-value", what, why, fix, given.location_of(name))


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
            given.location_of(name),
        )


def _first_of(given: GivenOptions, names: tuple[str, ...]) -> Iterator[Finding]:
    found = [name for name in names if given.has(name)]
    for name in found[1:]:
        yield Finding(
            "unknown-option",
            f"{given.what} sets both {quoted(found[0])} and {quoted(name)}, so {quoted(name)} has no effect",
            f"Spark uses the first one that is set of {', '.join(names)}",
            "remove one of them",
            given.location_of(name),
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
            given.location_of("startingOffsets"),
        )


def _bounds(given: GivenOptions) -> Iterator[Finding]:
    least, most = given.text("minOffsetsPerTrigger"), given.text("maxOffsetsPerTrigger")
    # Cut, because Python does not convert thousands of digits.
    if given.streams and least.isdecimal() and most.isdecimal() and int(least[:20]) > int(most[:20]):
        yield Finding(
            "option-value",
            f"{given.what} sets minOffsetsPerTrigger to {least} and maxOffsetsPerTrigger to {most}",
            "the minimum must not exceed the maximum",
            "lower the minimum, or raise the maximum",
            given.location_of("minOffsetsPerTrigger"),
        )


EXCLUDING = {
    "delta": (("startingVersion", "startingTimestamp"), ("versionAsOf", "timestampAsOf")),
    "iceberg": (
        ("versionAsOf", "timestampAsOf"),
        *((newer, "branch") for newer in ("versionAsOf", "timestampAsOf")),
        *((time, "start-snapshot-id") for time in ("start-timestamp", "end-timestamp")),
    ),
}
"""Pairs of options of a source of which the format takes only one."""

UNUSED_WITH_CHANGES = ("skipChangeCommits", "ignoreChanges", "ignoreDeletes")
"""The options of a stream of Delta for commits that change rows. With changes, each such row is a row of the stream."""

REPLACED = {"snapshot-id": "versionAsOf", "tag": "versionAsOf", "as-of-timestamp": "timestampAsOf"}
"""The options that Iceberg refuses since Spark has its own, and those of Spark."""


def _lake_problems(given: GivenOptions) -> Iterator[Finding]:
    """Yields the conflicts between the options of a source."""
    if not given.is_source:
        return
    for one, other in EXCLUDING[given.format.name]:
        if given.has(one) and given.has(other):
            yield Finding(
                "option-value",
                f"{given.what} sets both {one} and {other}",
                f"both choose which rows to read, and {given.format.name} supports only one of them",
                "remove one of them",
                given.location_of(other),
            )
    yield from _delta_changes(given) if given.format.name == "delta" else _replaced(given)
    if given.has("end-snapshot-id") and not given.has("start-snapshot-id"):
        yield Finding(
            "missing-key",
            f"{given.what} sets end-snapshot-id without start-snapshot-id",
            "Iceberg reads the rows that were added between two snapshots",
            "add start-snapshot-id, or use versionAsOf to read the table as it was",
            given.location_of("end-snapshot-id"),
        )


def _delta_changes(given: GivenOptions) -> Iterator[Finding]:
    """Yields the problems of a source that reads changes."""
    reads = next((name for name in CHANGE_FEED if given.text(name).lower() == "true"), None)
    if reads is not None:
        yield from _unused_with_changes(given) if given.streams else _static_changes(given, reads)


def _unused_with_changes(given: GivenOptions) -> Iterator[Finding]:
    for name in UNUSED_WITH_CHANGES:
        if given.text(name).lower() == "true":
            yield Finding(
                "unknown-option",
                f"{given.what} reads changes, so the option {quoted(name)} has no effect",
                "the stream has a row for each row that a commit changes or deletes, and skips none",
                "remove it",
                given.location_of(name),
                severity=Severity.WARNING,
            )


def _static_changes(given: GivenOptions, reads: str) -> Iterator[Finding]:
    """Yields the problems of a static table of changes, which has no default for where they begin. `reads` is the
    option that asks for the changes.
    """
    for name in ("versionAsOf", "timestampAsOf"):
        if given.has(name):
            yield Finding(
                "option-value",
                f"{given.what} reads changes, but sets {name}",
                "Delta reads changes from one version to another, not the rows of one version",
                "use startingVersion and endingVersion, or startingTimestamp and endingTimestamp",
                given.location_of(name),
            )
    starts_latest = given.text("startingVersion").lower() == "latest"
    if given.has("startingTimestamp") or (given.has("startingVersion") and not starts_latest):
        return
    yield Finding(
        "option-value" if starts_latest else "missing-key",
        f"{given.what} reads changes of a static table "
        + ("from startingVersion: latest" if starts_latest else "without startingVersion or startingTimestamp"),
        "Delta needs the number of a version, or a time, from which to read the changes of a static table",
        "set startingVersion, for example startingVersion: 0",
        given.location_of("startingVersion" if starts_latest else reads),
    )


def _replaced(given: GivenOptions) -> Iterator[Finding]:
    for old, new in REPLACED.items():
        if given.has(old):
            yield Finding(
                "option-value",
                f"{given.what} sets the option {quoted(old)}, which Iceberg no longer supports",
                f"Iceberg refuses to read the table, because Spark's option {new} replaces this one",
                f"use {new}"
                + (", with a time such as 2024-01-31T00:00:00" if new == "timestampAsOf" else "")
                + (", and mode: batch" if given.streams else ""),
                given.location_of(old),
            )
