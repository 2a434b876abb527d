"""The options of sources and sinks, as the rules on options look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.options.known import (
    FILE_INDEX,
    FILE_OPTIONS,
    FILE_STREAM,
    OF_WRITERS,
    OTHER_SINKS,
    OTHER_SOURCES,
)
from sqlstream.compiler.rules.sinks.outputs import terminal_models
from sqlstream.location import Location
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.project.secrets import OptionValue


@dataclass(frozen=True)
class GivenOptions:
    """The options of one source or sink: what messages call it, which of them Spark knows (None: nobody can say), and
    where each stands. `mode` is that of a source, stream or batch, and empty for a sink.
    """

    what: str
    format: str
    known: frozenset[str] | None
    options: Mapping[str, OptionValue]
    places: Mapping[str, Location]
    location: Location
    mode: str = ""

    @property
    def is_source(self) -> bool:
        """Whether it is read."""
        return bool(self.mode)

    @property
    def streams(self) -> bool:
        """Whether it is a source that is read as a stream."""
        return self.mode == "stream"

    def written(self, name: str) -> str | None:
        """Returns the option `name` in the letter case in which it is given, None where it is not."""
        return next((key for key in self.options if key.lower() == name.lower()), None)

    def has(self, name: str) -> bool:
        """Returns whether the option `name` is given, in whatever letter case."""
        return self.written(name) is not None

    def text(self, name: str) -> str | None:
        """Returns the value of an option, None where it is not given or holds a secret."""
        value = self.options.get(self.written(name) or "")
        return value if isinstance(value, str) else None

    def place(self, name: str) -> Location:
        """Returns where the option `name` is given."""
        written = self.written(name) or name
        return self.places.get(f"options.{written}", self.places.get("options", self.location))


def given_options(compiled: CompiledProject) -> tuple[GivenOptions, ...]:
    """Returns the options of all sources and sinks."""
    return (*given_sources(compiled), *given_sinks(compiled))


def given_sources(compiled: CompiledProject) -> Iterator[GivenOptions]:
    """Gives the options of each source."""
    for table in declared_sources(compiled.project.sources):
        format_name = table.format
        known = OTHER_SOURCES.get(format_name)
        if format_name in FILE_OPTIONS:
            known = FILE_OPTIONS[format_name] | FILE_INDEX | FILE_STREAM
        known = None if known is None else known | {"path"}
        what = f"source `{table.full_name}`"
        yield GivenOptions(what, format_name, known, table.options, table.places, table.location, table.mode)


def given_sinks(compiled: CompiledProject) -> Iterator[GivenOptions]:
    """Gives the options of each sink, and once more for each model that has options of its own."""
    places = {sink.name: sink.places for sink in compiled.project.sinks}
    seen: set[str] = set()
    unused = ((None, output) for output in compiled.unused_outputs)
    for model, output in (*terminal_models(compiled), *unused):
        own = {f"options.{name}": model.place_of("options") for name in model.config.options} if model else {}
        if output.sink in seen and not own:
            continue
        seen.add(output.sink)
        format_name = output.format
        known = FILE_OPTIONS.get(format_name, OTHER_SINKS.get(format_name))
        known = None if known is None else known | OF_WRITERS
        said = {**places.get(output.sink, {}), **own}
        yield GivenOptions(f"sink `{output.sink}`", format_name, known, output.options, said, output.location)
