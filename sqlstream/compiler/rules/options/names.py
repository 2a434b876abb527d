"""Rules about options of sources and sinks: names that Spark ignores, and values that it refuses only at runtime."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.options.given import GivenOptions, given_options
from sqlstream.compiler.rules.options.kafka import kafka_problems
from sqlstream.compiler.rules.options.known import (
    FILE_OPTIONS,
    FILE_STREAM,
    KAFKA_BATCH,
    KAFKA_STREAM,
    REFUSED_IN_STREAMS,
    REQUIRED,
)
from sqlstream.compiler.rules.options.values import CHARSET, MODE, PATTERN, Form, codecs, form_of
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding, Severity
from sqlstream.project.nearest import nearest
from sqlstream.project.values import Target
from sqlstream.project.wording import alternatives, quoted, quoted_list

NEAR = 0.8
"""How like a known option (1.0: the same) one must be to be taken for a misspelling of it."""

SPLIT_BY = ("partitionColumn", "lowerBound", "upperBound")
"""Options of a JDBC source that go together, with numPartitions, which may also be given without them."""

WRITTEN = frozenset({"jdbc", "kafka"})
"""Formats that need the same options whether they are read or written."""

LENIENT = {
    "spark.sql.legacy.javaCharsets": CHARSET,
    "spark.sql.legacy.timeParserPolicy": PATTERN,
}
"""Settings of a target under which Spark takes more for an option."""


@rule("unknown-option", severity=Severity.WARNING)
def ignored_options(compiled: CompiledProject) -> list[Finding]:
    """Spark ignores unknown options and options without effect. Names with a dot configure the file system."""
    return [found for given in given_options(compiled) for found in (*_unknown(given), *_without_effect(given))]


@rule("option-value")
def option_values(compiled: CompiledProject) -> list[Finding]:
    """Spark reads most option values only after a query has started."""
    target = compiled.project.target
    return [finding for given in given_options(compiled) for finding in _wrong_values(given, target)]


@rule("missing-key", "option-value", "unknown-option")
def required_options(compiled: CompiledProject) -> list[Finding]:
    """Some sources need certain options, and some options need or exclude each other."""
    findings: list[Finding] = []
    for given in given_options(compiled):
        findings += [*_missing(given), *_together(given), *(kafka_problems(given) if given.format == "kafka" else ())]
    return findings


def _unknown(given: GivenOptions) -> Iterator[Finding]:
    known = {name.lower() for name in given.known or ()}
    for name in given.options:
        is_elsewhere = name.lower().startswith("kafka.") if given.format == "kafka" else "." in name
        if given.known is None or name.lower() in known or is_elsewhere:
            continue
        close = nearest(name, sorted(given.known), 1, likeness=NEAR)
        if not close and given.format == "kafka" and "." in name:
            close = (f"kafka.{name}",)
        yield Finding(
            "unknown-option",
            f"{given.what} sets {quoted(name)}, which is not an option of Spark's {given.format} format",
            "Spark silently ignores unknown options",
            f"did you mean {alternatives(close)}?"
            if close
            else "remove it, or check its name in the Spark documentation",
            given.place(name),
            severity=Severity.WARNING,
        )


def _without_effect(given: GivenOptions) -> Iterator[Finding]:
    """What only streams look at in a batch, and only batches in a stream."""
    in_files = given.format in FILE_OPTIONS
    for_streams = FILE_STREAM if in_files else KAFKA_STREAM if given.format == "kafka" else frozenset()
    for_batches = KAFKA_BATCH if given.format == "kafka" else frozenset()
    ignored = {"batch": for_streams, "stream": for_batches - set(REFUSED_IN_STREAMS)}.get(given.mode, ())
    for name in sorted(ignored):
        if given.has(name):
            other = "batch" if given.streams else "stream"
            yield Finding(
                "unknown-option",
                f"{given.what} is a {given.mode} source, so the option {quoted(name)} has no effect",
                f"Spark uses this option only when the source is read as a {other}",
                f"remove it, or set mode: {other}",
                given.place(name),
                severity=Severity.WARNING,
            )


def _wrong_values(given: GivenOptions, target: Target) -> Iterator[Finding]:
    for name, value in given.options.items():
        form = form_of(given.format, name, streams=given.streams)
        if name.lower() == "compression" and given.format in FILE_OPTIONS and given.format != "binaryFile":
            form = codecs(given.format)
        lenient = any(key in target.spark and taken is form for key, taken in LENIENT.items())
        if form is None or lenient or not isinstance(value, str) or form.takes(value):
            continue
        yield Finding(
            "option-value",
            f"{given.what} sets the option {quoted(name)} to {quoted(value)}",
            f"Spark expects {form.words}" + (", and silently accepts anything else" if form is MODE else ""),
            _corrected(form, value),
            given.place(name),
        )


def _corrected(form: Form, value: str) -> str:
    """The fix for a value that an option does not take: the keywords that it resembles, or what it takes."""
    close = nearest(value, form.keywords, 1)
    if close:
        return f"did you mean {alternatives(close)}?"
    return f"use {form.words}"


def _missing(given: GivenOptions) -> Iterator[Finding]:
    kind, place = ("source", "the table") if given.is_source else ("sink", "the sink")
    for name, meaning, example in REQUIRED.get(given.format, ()) if given.is_source or given.format in WRITTEN else ():
        if not given.has(name):
            yield Finding(
                "missing-key",
                f"{given.what} needs the option {name}",
                f"a {kind} of format {given.format} needs it: {meaning}",
                f"add options: {{{example}}} to {place}",
                given.location,
            )


def _together(given: GivenOptions) -> Iterator[Finding]:
    in_question = given.format in FILE_OPTIONS or given.format == "kafka"
    for name in REFUSED_IN_STREAMS if given.streams and in_question else ():
        if given.has(name):
            yield Finding(
                "option-value",
                f"{given.what} is a stream with the option {name}",
                "Spark supports this option only for static tables",
                "remove it, or set mode: batch"
                + ("" if given.format == "kafka" else "; to choose files, use pathGlobFilter"),
                given.place(name),
            )
    if given.streams and given.has("maxFilesPerTrigger") and given.has("maxBytesPerTrigger"):
        yield Finding(
            "option-value",
            f"{given.what} sets both maxFilesPerTrigger and maxBytesPerTrigger",
            "Spark limits a batch by only one of them",
            "remove one of them",
            given.place("maxBytesPerTrigger"),
        )
    archives = (given.text("cleanSource") or "").lower() == "archive"
    if given.streams and archives and not given.has("sourceArchiveDir"):
        yield Finding(
            "missing-key",
            f"{given.what} archives the files it has read, but sets no sourceArchiveDir",
            "Spark moves the files to that folder, and does not start without it",
            "set sourceArchiveDir to a folder outside the path, or use cleanSource: off",
            given.place("cleanSource"),
        )
    if given.format == "jdbc":
        yield from _jdbc_problems(given)


def _jdbc_problems(given: GivenOptions) -> Iterator[Finding]:
    table, query = given.has("dbtable"), given.is_source and given.has("query")
    if table == query:
        yield Finding(
            "option-value" if table else "missing-key",
            f"{given.what} has {'both of the options dbtable and query' if table else 'no option dbtable'}",
            "Spark reads one table or one query from a database, and writes one table",
            "remove one of them" if table else "add options: {dbtable: schema.table}",
            given.place("query") if table else given.location,
        )
    split = [name for name in SPLIT_BY if given.has(name)]
    missing = [name for name in (*SPLIT_BY, "numPartitions") if not given.has(name)]
    if given.is_source and split and missing:
        yield Finding(
            "missing-key",
            f"{given.what} sets the option {quoted(split[0])} without {quoted_list(missing)}",
            "Spark splits the table into ranges of the column, and needs all of these options or none",
            f"add the missing options, or remove {quoted_list(split)}",
            given.place(split[0]),
        )
