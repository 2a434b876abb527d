"""Rules about the names of formats."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.project.nearest import nearest
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.project.values import Sink, SourceTable
from sqlstream.project.wording import alternatives

SOURCE_FORMATS = (
    *(
        "avro",
        "binaryFile",
        "csv",
        "delta",
        "image",
        "jdbc",
        "json",
        "kafka",
        "libsvm",
        "orc",
        "parquet",
        "python",
        "rate",
    ),
    *("rate-micro-batch", "socket", "state-metadata", "statestore", "table", "text", "xml"),
)
"""What Spark can read from, with its own packages and Delta Lake (`DataSourceRegister` in META-INF/services)."""

SINK_FORMATS = (
    "avro",
    "console",
    "csv",
    "delta",
    "json",
    "kafka",
    "memory",
    "noop",
    "orc",
    "parquet",
    "python",
    "table",
    "text",
    "xml",
)
"""What Spark can write a stream into, likewise."""

NEAR = 0.75
"""How like a known name (1.0: the same) one must be to be taken for a misspelling of it."""

_JARS = ("spark.jars", "spark.driver.extraClassPath", "spark.plugins", "spark.submit.pyFiles")
"""Settings that may bring data sources of their own."""


@rule("unknown-format")
def misspelt_formats(compiled: CompiledProject) -> list[Finding]:
    """Spark accepts any installed data source. If the target installs none, a similar name is a typo."""
    target = compiled.project.target
    if target.packages or target.remote or not target.is_local or any(key.startswith(_JARS) for key in target.spark):
        return []
    sources = declared_sources(compiled.project.sources)
    findings = [_misspelt(f"source `{table.full_name}`", table, SOURCE_FORMATS) for table in sources]
    findings += [_misspelt(f"sink `{sink.name}`", sink, SINK_FORMATS) for sink in compiled.project.sinks]
    return [finding for finding in findings if finding is not None]


def _misspelt(what: str, declared: SourceTable | Sink, known: tuple[str, ...]) -> Finding | None:
    name = declared.format
    if name in (*SOURCE_FORMATS, *SINK_FORMATS):
        return None
    close = nearest(name, known, likeness=NEAR) or tuple(each for each in known if sorted(each) == sorted(name.lower()))
    if not close:
        return None
    return Finding(
        "unknown-format",
        f"{what} uses the format `{name}`, which Spark does not have",
        "the target adds no packages, so only Spark's built-in formats are available",
        f"did you mean {alternatives(close)}?",
        declared.places.get("format", declared.location),
    )
