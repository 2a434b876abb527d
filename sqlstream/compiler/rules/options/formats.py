"""The rule on misspelled formats."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.project.formats.format import STREAM
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.nearest import nearest
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.project.values import Sink, SourceTable
from sqlstream.project.wording import alternatives

NEAR = 0.75
"""The least similarity (1.0: equal) at which a name counts as a misspelling of a known one."""

_JARS = ("spark.jars", "spark.driver.extraClassPath", "spark.plugins", "spark.submit.pyFiles")
"""Settings that may add data sources."""


@rule("unknown-format")
def misspelled_formats(compiled: CompiledProject) -> list[Finding]:
    """Spark accepts any installed data source. If the target installs none, a similar name is a typo."""
    target = compiled.project.target
    if target.packages or target.remote or not target.is_local or any(key.startswith(_JARS) for key in target.spark):
        return []
    readable = [name for name, known in FORMATS.items() if known.reads]
    streamed = [name for name, known in FORMATS.items() if STREAM in known.writes]
    sources = declared_sources(compiled.project.sources)
    findings = [_misspelled(f"source `{table.full_name}`", table, readable) for table in sources]
    findings += [_misspelled(f"sink `{sink.name}`", sink, streamed) for sink in compiled.project.sinks]
    return [finding for finding in findings if finding is not None]


def _misspelled(what: str, declared: SourceTable | Sink, known: list[str]) -> Finding | None:
    name = declared.format
    if name in FORMATS:
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
