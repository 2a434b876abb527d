"""Rules about options of sources and sinks: unknown names, wrong values, missing and conflicting options."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.options.conflicts import conflicts
from sqlstream.compiler.rules.options.given import GivenOptions, given_options
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.errors import Finding, Severity
from sqlstream.project.formats.format import BATCH, STREAM
from sqlstream.project.formats.option_types import CHARSET, MODE, PATTERN, OptionType
from sqlstream.project.values import Target
from sqlstream.project.wording import alternatives, nearest, quoted

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
        yield from conflicts(given)


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
            given.place(name),
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
                given.place(name),
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
            given.place(name),
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
