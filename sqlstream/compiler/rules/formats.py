"""Rules about the formats of sources and sinks: misspelled formats, and the names and paths that formats need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject, Output
from sqlstream.compiler.connectors import needed_connectors
from sqlstream.compiler.rules.options import has_path_option
from sqlstream.compiler.rules.rule import Problem, Problems, declared_outputs, rule, terminal_models
from sqlstream.compiler.rules.sources import used_sources
from sqlstream.compiler.spark_versions import TESTED, minor_version_text
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.connectors.connectors import SESSION_CATALOG
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.files.python_files import find_name
from sqlstream.project.formats.format import STREAM
from sqlstream.project.formats.formats import FORMATS, format_of
from sqlstream.project.values import Sink, SourceTable
from sqlstream.project.wording import alternatives, nearest, quoted_list

NEAR = 0.75
"""The lowest similarity (1.0: equal) at which a name counts as a misspelling of a known one."""

WRAPPERS = ("org.apache.spark.sql.delta.catalog.DeltaCatalog",)
"""Session catalogs that keep the names of tables where Spark's own catalog does."""

_JARS = ("spark.jars", "spark.driver.extraClassPath", "spark.plugins", "spark.submit.pyFiles")
"""Settings that may add data sources."""


@rule("unknown-format")
def misspelled_formats(compiled: CompiledProject) -> Problems:
    """Spark accepts any installed data source. If the target installs none, a similar name is a typo."""
    target, project = compiled.project.target, compiled.project
    if target.packages or target.remote or not target.is_local or any(key.startswith(_JARS) for key in target.spark):
        return
    readable = [name for name, known in FORMATS.items() if known.reads]
    streamed = [name for name, known in FORMATS.items() if STREAM in known.writes]
    formats: list[tuple[str, SourceTable | Sink, list[str]]] = [
        *((f"source `{table.full_name}`", table, readable) for table in declared_sources(project.sources)),
        *((f"sink `{sink.name}`", sink, streamed) for sink in project.sinks),
    ]
    for what, declared, known in formats:
        close = _nearest_formats(declared.format, known)
        if close:
            yield Problem(
                f"{what} uses the format `{declared.format}`, which Spark does not have",
                "the target adds no packages, so only Spark's built-in formats are available",
                f"did you mean {alternatives(close)}?",
                declared.locations.get("format", declared.location),
            )


@rule("no-connector")
def connectors_without_release(compiled: CompiledProject) -> Problems:
    """The connector of a format needs a release for the installed Spark, unless the target brings its own jars."""
    minor = minor_version_text(compiled.options.spark or TESTED[-1])
    for needed in needed_connectors(compiled).values():
        connector = needed.connector
        if connector.release_for(minor) is None:
            releases = quoted_list(tuple(connector.releases))
            install = f"install PySpark {max(connector.releases)}, or " if releases else ""
            there_are = f"there are releases for {releases}" if releases else "sqlstream knows none that works on it"
            yield Problem(
                f"{needed.by} needs {connector.title}, which has no release for Spark {minor}",
                f"a release works only on its own Spark; {there_are}",
                f"{install}name a release for {minor} in the target's packages:",
                needed.location,
            )


def _nearest_formats(name: str, known: list[str]) -> tuple[str, ...]:
    """Returns the formats that `name` may be a misspelling of; empty if it is a format itself."""
    if name in FORMATS:
        return ()
    # Letters in another order, such as `cvs`, are too far from a short name by their likeness.
    return nearest(name, known, likeness=NEAR) or tuple(each for each in known if sorted(each) == sorted(name.lower()))


@dataclass(frozen=True)
class _NamedPart:
    """The `key` of a source or sink that only the format `for_format` reads; `name` is its value, None without one."""

    what: str
    format: str
    for_format: str
    key: str
    name: str | None
    location: Location


@rule("missing-key", "unknown-key")
def named_parts(compiled: CompiledProject) -> Problems:
    """The formats `python` and `table` need the name of a definition in python/ or of a table; other formats do not."""
    parts = _tables(compiled, declared_sources(compiled.project.sources), declared_outputs(compiled))
    for part in (*_python_names(compiled), *parts):
        is_python = part.for_format == "python"
        if part.format == part.for_format and part.name is None:
            named = "a class or function in the python/ folder" if is_python else "a table in Spark's catalog"
            example = "alerts:Alerts for a definition in python/alerts.py" if is_python else "warehouse.orders"
            yield Finding(
                "missing-key",
                f"{part.what} has the format {part.format} but no key `{part.key}`",
                f"the format {part.format} needs the name of {named}",
                f"for example, add {part.key}: {example}",
                part.location,
            )
        elif part.format != part.for_format and part.name is not None and not _may_name(part):
            purpose = "runs code of the project" if is_python else "looks up a name in Spark's catalog"
            yield Finding(
                "unknown-key",
                f"{part.what} has the key `{part.key}`, but its format is {part.format}",
                f"only the format {part.for_format} {purpose}",
                f"set format: {part.for_format}, or remove the key",
                part.location,
            )


def _may_name(part: _NamedPart) -> bool:
    """Returns whether a format other than `table` can have the name of a table, instead of a path."""
    return part.key == "table" and format_of(part.format).is_table


@rule("python-name")
def python_names(compiled: CompiledProject) -> Problems:
    """A source of format `python` names a class in python/, and a sink a function or class."""
    for part in _python_names(compiled):
        if part.format != "python" or part.name is None:
            continue
        found = find_name(compiled.project.python, part.name, part.location)
        if isinstance(found, Finding):
            yield found
        elif part.key == "class" and found.kind not in ("class", "value"):
            yield Problem(
                f"{part.what} is read by `{part.name}`, which is not a class",
                "a source of format python must be a DataSource of pyspark.sql.datasource",
                "name a class that derives from DataSource",
                part.location,
            )


def _python_names(compiled: CompiledProject) -> Iterator[_NamedPart]:
    for table in declared_sources(compiled.project.sources):
        what, place = f"source `{table.full_name}`", table.locations.get("class", table.location)
        yield _NamedPart(what, table.format, "python", "class", table.python, place)
    for sink in compiled.project.sinks:
        place = sink.locations.get("function", sink.location)
        yield _NamedPart(f"sink `{sink.name}`", sink.format, "python", "function", sink.function, place)


def _tables(
    compiled: CompiledProject, sources: Iterable[SourceTable], outputs: Iterable[Output]
) -> Iterator[_NamedPart]:
    for table in sources:
        what, place = f"source `{table.full_name}`", table.locations.get("table", table.location)
        yield _NamedPart(what, table.format, "table", "table", table.table or None, place)
    places = {sink.name: sink.locations.get("table", sink.location) for sink in compiled.project.sinks}
    # Of several outputs of one sink, the first one stays in the mapping.
    for name, output in {output.sink: output for output in reversed(list(outputs))}.items():
        yield _NamedPart(f"sink `{name}`", output.format, "table", "table", output.table or None, places[name])


@rule("missing-path", "invalid-value")
def paths_of_tables(compiled: CompiledProject) -> Problems:
    """A table of Delta Lake or Iceberg has either a path or a name in a catalog."""
    outputs = {output.sink: output for output in declared_outputs(compiled)}.values()
    by_name = "path: with its folder, or table: with its name"
    declared: list[tuple[str, SourceTable | Output, str]] = [
        *((f"source `{table.full_name}`", table, by_name) for table in declared_sources(compiled.project.sources)),
        *((f"sink `{output.sink}`", output, 'a path, for example path: "{{ model.name }}"') for output in outputs),
    ]
    for what, each, example in declared:
        if not format_of(each.format).is_table or has_path_option(each.options):
            continue
        if not each.path and not each.table:
            yield Finding(
                "missing-path",
                f"{what} has no path and no table",
                f"{each.format} finds a table by its folder or by its name in a catalog",
                f"add {example}",
                each.location,
            )
        elif each.path and each.table:
            yield Finding(
                "invalid-value",
                f"{what} has both a path and a table",
                "both name a table, and there can be only one",
                "remove one of them",
                each.location,
            )


@rule("temporary-catalog")
def temporary_catalogs(compiled: CompiledProject) -> Problems:
    """By default Spark's catalog is in memory and forgets tables when the process ends."""
    target = compiled.project.target
    for part in _tables(compiled, used_sources(compiled), [output for _, output in terminal_models(compiled)]):
        is_table = part.format == "table" or _may_name(part)
        if is_table and part.name and not keeps_tables(target, part.name):
            yield Problem(
                f"{part.what} is the table `{part.name}`, but the catalog of target `{target.name}` is not persistent",
                "the catalog is in memory and is lost when the process ends: the next run finds no table, or a folder "
                "in its way",
                "use a persistent catalog, for example spark: {spark.sql.catalogImplementation: hive}",
                part.location,
            )


def keeps_tables(target: Target, table: str) -> bool:
    """Returns whether the catalog of `table` may outlive a process on `target`; a cluster may have its own catalog."""
    is_hive = str(target.spark.get("spark.sql.catalogImplementation", "")).lower() == "hive"
    if target.remote is not None or not target.is_local or is_hive or _catalog(target, table) != "spark_catalog":
        return True
    session = target.spark.get(SESSION_CATALOG)
    return session is not None and str(session) not in WRAPPERS


def is_of_spark(target: Target, table: str) -> bool:
    """Returns whether `table` is certainly in the catalog that comes with Spark, whose tables are files."""
    is_default = target.remote is None and target.is_local and SESSION_CATALOG not in target.spark
    return is_default and _catalog(target, table) == "spark_catalog"


def _catalog(target: Target, table: str) -> str:
    first = table.replace("`", "").split(".")[0]
    is_catalog = f"spark.sql.catalog.{first}" in target.spark
    return first if is_catalog else str(target.spark.get("spark.sql.defaultCatalog", "spark_catalog"))
