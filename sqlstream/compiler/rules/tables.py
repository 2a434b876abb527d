"""Rules on Delta Lake and Iceberg, whose tables have a path or a name in a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.options.given import has_path_option
from sqlstream.compiler.rules.rule import Problems, declared_outputs, rule
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.formats.formats import format_of


@dataclass(frozen=True)
class _Place:
    """The path and the name of the table of a source or sink, `what` in messages."""

    what: str
    format: str
    path: str | None
    table: str | None
    example: str
    location: Location


@rule("missing-path", "invalid-value")
def places_of_tables(compiled: CompiledProject) -> Problems:
    """A table of Delta Lake or Iceberg has either a path or a name in a catalog."""
    for place in _places(compiled):
        if not place.path and not place.table:
            yield Finding(
                "missing-path",
                f"{place.what} has no path and no table",
                f"{place.format} finds a table by its folder or by its name in a catalog",
                f"add {place.example}",
                place.location,
            )
        elif place.path and place.table:
            yield Finding(
                "invalid-value",
                f"{place.what} has both a path and a table",
                "both name a table, and there can be only one",
                "remove one of them",
                place.location,
            )


def _places(compiled: CompiledProject) -> Iterator[_Place]:
    for table in declared_sources(compiled.project.sources):
        if format_of(table.format).is_table and not has_path_option(table.options):
            what, example = f"source `{table.full_name}`", "path: with its folder, or table: with its name"
            yield _Place(what, table.format, table.path, table.table, example, table.location)
    for output in {output.sink: output for output in declared_outputs(compiled)}.values():
        if format_of(output.format).is_table and not has_path_option(output.options):
            what, example = f"sink `{output.sink}`", 'a path, for example path: "{{ model.name }}"'
            yield _Place(what, output.format, output.path, output.table, example, output.location)
