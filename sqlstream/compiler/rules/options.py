"""Rules about options of sources and sinks: names that Spark would ignore, values that it would refuse late."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.option_names import (
    BATCH_ONLY,
    BOOLEANS,
    CODECS,
    COUNTS,
    FILE_FORMATS,
    FILE_INDEX,
    FILE_STREAM,
    OF_WRITERS,
    OTHER_SINKS,
    OTHER_SOURCES,
    REQUIRED,
    WORDS,
)
from sqlstream.compiler.rules.outputs import terminal_models
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.sources import used_sources
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.nearest import nearest
from sqlstream.project.values import OptionValue
from sqlstream.project.wording import alternatives, quoted

NEAR = 0.8
"""How like a known option (1.0: the same) one must be to be taken for a misspelling of it."""

_DURATION = re.compile(r"-?\d+(us|ms|s|m|min|h|d)?", re.IGNORECASE)
"""What Spark's JavaUtils.timeStringAs reads; without a unit it is milliseconds."""


@dataclass(frozen=True)
class _Given:
    """The options of one source or sink: what messages call it, which of them Spark knows, and where each stands.

    `streams` says that it is a source read as a stream.
    """

    what: str
    format: str
    known: frozenset[str]
    options: Mapping[str, OptionValue]
    places: Mapping[str, Location]
    location: Location
    streams: bool = False

    def place(self, name: str) -> Location:
        """Returns where the option `name` is given, in whatever case of letters."""
        written = next((key for key in self.options if key.lower() == name.lower()), name)
        return self.places.get(f"options.{written}", self.places.get("options", self.location))

    def text(self, name: str) -> str | None:
        """Returns the value of an option in whatever case of letters, None where there is none or it is a secret."""
        found = [value for key, value in self.options.items() if key.lower() == name.lower()]
        return found[0] if found and isinstance(found[0], str) else None

    def has(self, name: str) -> bool:
        """Returns whether the option `name` is given, in whatever case of letters."""
        return any(key.lower() == name.lower() for key in self.options)


@rule("unknown-option", severity=Severity.WARNING)
def ignored_options(compiled: CompiledProject) -> list[Finding]:
    """Spark ignores an option that it does not know. Names with a dot are for the file system."""
    return [found for given in _all(compiled) for found in _unknown(given)]


@rule("invalid-value")
def option_values(compiled: CompiledProject) -> list[Finding]:
    """Most values of options are read only when a query has started."""
    return [
        Finding(
            "invalid-value",
            f"{given.what} has the option {quoted(name)} with the value {quoted(value)}",
            f"Spark takes {wanted}"
            if name.lower() != "mode"
            else f"Spark takes {wanted}, and anything else in silence",
            "correct the value",
            given.place(name),
        )
        for given in _all(compiled)
        for name, value in given.options.items()
        if isinstance(value, str)
        for wanted in [_wanted(given, name, value)]
        if wanted is not None
    ]


@rule("missing-key", "invalid-value")
def required_options(compiled: CompiledProject) -> list[Finding]:
    """Some sources read nothing without certain options, and some options need or exclude each other."""
    return [finding for given in _sources(compiled) for finding in (*_missing(given), *_together(given))]


def _all(compiled: CompiledProject) -> Iterator[_Given]:
    yield from _sources(compiled)
    yield from _sinks(compiled)


def _sources(compiled: CompiledProject) -> Iterator[_Given]:
    for table in used_sources(compiled):
        format_name = table.format.lower()
        known = OTHER_SOURCES.get(format_name)
        if format_name in FILE_FORMATS:
            known = FILE_FORMATS[format_name] | FILE_INDEX | FILE_STREAM
        if known is not None:
            what = f"source `{table.full_name}`"
            known = known | {"path"}
            is_stream = table.mode == "stream"
            yield _Given(what, format_name, known, table.options, table.places, table.location, is_stream)


def _sinks(compiled: CompiledProject) -> Iterator[_Given]:
    places = {sink.name: sink.places for sink in compiled.project.sinks}
    seen: set[str] = set()
    for model, output in terminal_models(compiled):
        format_name = output.format.lower()
        known = FILE_FORMATS.get(format_name, OTHER_SINKS.get(format_name))
        if known is None or (output.sink in seen and not model.config.options):
            continue
        seen.add(output.sink)
        own = {f"options.{name}": model.place_of("options") for name in model.config.options}
        said = {**places.get(output.sink, {}), **own}
        yield _Given(f"sink `{output.sink}`", format_name, known | OF_WRITERS, output.options, said, output.location)


def _unknown(given: _Given) -> Iterator[Finding]:
    known = {name.lower() for name in given.known}
    for name in given.options:
        if name.lower() in known or "." in name:
            continue
        close = nearest(name, sorted(given.known), 1, likeness=NEAR)
        yield Finding(
            "unknown-option",
            f"{given.what} has the option {quoted(name)}, which Spark's {given.format} does not know",
            "Spark ignores an unknown option in silence",
            f"did you mean {alternatives(close)}?" if close else "delete it, or look its name up in Spark's guide",
            given.place(name),
            severity=Severity.WARNING,
        )


def _wanted(given: _Given, name: str, value: str) -> str | None:
    """What Spark takes for the option, where `value` is not that."""
    known = {option.lower(): option for option in given.known}.get(name.lower())
    if known is None:
        return None
    if known in BOOLEANS:
        return None if value.lower() in ("true", "false") else "true or false"
    if known in COUNTS:
        return None if re.fullmatch(r"\+?0*[1-9]\d*", value) else "a whole number from 1 on"
    if known in WORDS:
        words = WORDS[known]
        return None if value.upper() in map(str.upper, words) else alternatives(words)
    if known == "maxFileAge":
        return None if _DURATION.fullmatch(value.strip()) else "one number with a unit, such as 7d, 12h or 30m"
    if known == "compression" and given.what.startswith("sink") and "." not in value:
        codecs = CODECS[given.format]
        return None if value.lower() in codecs else alternatives(codecs)
    return None


def _missing(given: _Given) -> Iterator[Finding]:
    for name, meaning, example in REQUIRED.get(given.format, ()):
        if not given.has(name):
            yield Finding(
                "missing-key",
                f"{given.what} has no option {name}",
                f"Spark needs it from a source of format {given.format}: {meaning}",
                f"add options: {{{example}}} to the table",
                given.location,
            )


def _together(given: _Given) -> Iterator[Finding]:
    for name in BATCH_ONLY if given.streams else ():
        if given.has(name):
            yield Finding(
                "invalid-value",
                f"{given.what} is a stream with the option {name}",
                "Spark takes it for static tables only",
                "delete it, choose files with pathGlobFilter, or say mode: batch",
                given.place(name),
            )
    if given.has("maxFilesPerTrigger") and given.has("maxBytesPerTrigger"):
        yield Finding(
            "invalid-value",
            f"{given.what} has both maxFilesPerTrigger and maxBytesPerTrigger",
            "Spark bounds a batch by one of the two",
            "delete one of them",
            given.place("maxBytesPerTrigger"),
        )
    if (given.text("cleanSource") or "").lower() == "archive" and not given.has("sourceArchiveDir"):
        yield Finding(
            "missing-key",
            f"{given.what} archives what it has read, and has no option sourceArchiveDir",
            "Spark moves the files there, and refuses to start without it",
            "add sourceArchiveDir with a folder that the path does not cover, or take cleanSource: off",
            given.place("cleanSource"),
        )
