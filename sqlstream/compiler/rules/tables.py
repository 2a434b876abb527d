"""Rules about tables in Spark's catalog, as sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlstream.compiler.compiled import CompiledProject, Output
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.sinks.outputs import declared_outputs, terminal_models
from sqlstream.compiler.rules.sources import used_sources
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.project.values import SourceTable, Target

SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
WRAPPERS = ("org.apache.spark.sql.delta.catalog.DeltaCatalog",)
"""Session catalogs that keep the names of tables where Spark's own catalog does."""


@rule("missing-key", "unknown-key")
def table_names(compiled: CompiledProject) -> list[Finding]:
    """The format `table` needs the name of a table in the catalog; other formats do not take one."""
    findings: list[Finding] = []
    declared = _places(compiled, declared_sources(compiled.project.sources), declared_outputs(compiled))
    for what, format_name, table, location in declared:
        if format_name == "table" and not table:
            findings.append(
                Finding(
                    "missing-key",
                    f"{what} has the format table but no key `table`",
                    "the format table needs the name of a table in Spark's catalog",
                    "for example, add table: warehouse.orders",
                    location,
                )
            )
        elif format_name != "table" and table:
            findings.append(
                Finding(
                    "unknown-key",
                    f"{what} has the key `table`, but its format is {format_name}",
                    "only the format table looks up a name in Spark's catalog",
                    "set format: table, or remove the key",
                    location,
                )
            )
    return findings


@rule("temporary-catalog")
def temporary_catalogs(compiled: CompiledProject) -> list[Finding]:
    """By default Spark's catalog is in memory and forgets tables when the process ends."""
    target = compiled.project.target
    used = _places(compiled, used_sources(compiled), [output for _, output in terminal_models(compiled)])
    return [
        Finding(
            "temporary-catalog",
            f"{what} is the table `{table}`, but the catalog of target `{target.name}` is not persistent",
            "the catalog is in memory and is lost when the process ends: the next run finds no table, or a "
            "folder in its way",
            "use a persistent catalog, for example spark: {spark.sql.catalogImplementation: hive}",
            location,
        )
        for what, format_name, table, location in used
        if format_name == "table" and table and not keeps_tables(target, table)
    ]


def keeps_tables(target: Target, table: str) -> bool:
    """Returns whether the catalog of `table` may outlive a process on `target`; a cluster may have one of its own."""
    if target.remote is not None or not target.is_local:
        return True
    if str(target.spark.get("spark.sql.catalogImplementation", "")).lower() == "hive":
        return True
    first = table.replace("`", "").split(".")[0]
    catalog = first if f"spark.sql.catalog.{first}" in target.spark else target.spark.get("spark.sql.defaultCatalog")
    if catalog is not None and str(catalog) != "spark_catalog":
        return True
    session = target.spark.get(SESSION_CATALOG)
    return session is not None and str(session) not in WRAPPERS


def is_of_spark(target: Target, table: str) -> bool:
    """Returns whether `table` lies for certain in the catalog that comes with Spark, whose tables are files."""
    if target.remote is not None or not target.is_local or SESSION_CATALOG in target.spark:
        return False
    first = table.replace("`", "").split(".")[0]
    default = str(target.spark.get("spark.sql.defaultCatalog", "spark_catalog"))
    return f"spark.sql.catalog.{first}" not in target.spark and default == "spark_catalog"


def _places(
    compiled: CompiledProject, tables: Iterable[SourceTable], outputs: Iterable[Output]
) -> Iterator[tuple[str, str, str | None, Location]]:
    """Every source and sink among these: what messages call it, its format, its table and its place."""
    for table in tables:
        yield f"source `{table.full_name}`", table.format, table.table, table.places.get("table", table.location)
    seen: set[str] = set()
    places = {sink.name: sink.places.get("table", sink.location) for sink in compiled.project.sinks}
    for output in outputs:
        if output.sink not in seen:
            seen.add(output.sink)
            yield f"sink `{output.sink}`", output.format, output.table, places[output.sink]
