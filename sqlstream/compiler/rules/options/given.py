"""The options of each source and sink, in the form that the rules on options need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import terminal_models
from sqlstream.location import Location
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.formats.format import STREAM, Format
from sqlstream.project.formats.formats import MESSAGES, format_of
from sqlstream.project.messages.message_format import PROTOBUF, MessageFormat
from sqlstream.project.secrets import OptionValue
from sqlstream.project.values import SourceTable


@dataclass(frozen=True)
class GivenOptions:
    """The options of a source or sink, with their locations. `what` is its name in messages. `mode` is the mode of a
    source, and empty for a sink. `key` is the key of the options in YAML.
    """

    what: str
    format: Format
    options: Mapping[str, OptionValue]
    places: Mapping[str, Location]
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

    def place(self, name: str) -> Location:
        """Returns the location of the option `name`."""
        written = self.written(name) or name
        return self.places.get(f"{self.key}.{written}", self.places.get(self.key, self.location))


def _value_options(table: SourceTable, messages: MessageFormat) -> GivenOptions:
    """Returns the options of the parser of values."""
    facts = MESSAGES.get(messages.value_format) or Format(messages.value_format, lists_all_options=True)
    what, options = f"source `{table.full_name}`", messages.options
    return GivenOptions(what, facts, options, table.places, table.location, table.mode, "value_options")


def given_options(compiled: CompiledProject) -> Iterator[GivenOptions]:
    """Yields the options of each source and sink, and of each model that adds options to its sink."""
    for table in declared_sources(compiled.project.sources):
        what, facts = f"source `{table.full_name}`", format_of(table.format)
        yield GivenOptions(what, facts, table.options, table.places, table.location, table.mode)
        if table.messages is not None and (table.messages.options or table.messages.value_format == PROTOBUF):
            yield _value_options(table, table.messages)
    places = {sink.name: sink.places for sink in compiled.project.sinks}
    seen: set[str] = set()
    for model, output in (*terminal_models(compiled), *((None, output) for output in compiled.unused_outputs)):
        own = {f"options.{name}": model.place_of("options") for name in model.config.options} if model else {}
        if own or output.sink not in seen:
            merged = {**places.get(output.sink, {}), **own}
            what, facts = f"sink `{output.sink}`", format_of(output.format)
            yield GivenOptions(what, facts, output.options, merged, output.location)
        if not own:
            seen.add(output.sink)


def has_path_option(names: Iterable[str]) -> bool:
    """Returns whether one of the options `names` is the path."""
    return any(name.lower() == "path" for name in names)
