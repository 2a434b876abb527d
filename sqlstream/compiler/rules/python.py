"""Rules about Python sources and sinks of the project."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.files.python_files import find_name
from sqlstream.project.on_corrupt import declared_sources


@rule("missing-key", "unknown-key", "python-name")
def python_names(compiled: CompiledProject) -> list[Finding]:
    """A source or sink with the format `python` names a function or class in python/; others must not."""
    findings: list[Finding] = []
    for what, key, format_name, reference, location in _declared(compiled):
        if format_name == "python" and reference is None:
            findings.append(_missing(what, key, location))
        elif format_name != "python" and reference is not None:
            findings.append(_unused(what, key, format_name, location))
        elif reference is not None:
            found = find_name(compiled.project.python, reference, location)
            if isinstance(found, Finding):
                findings.append(found)
            elif key == "class" and found.kind not in ("class", "value"):
                findings.append(_no_class(what, reference, location))
    return findings


def _declared(compiled: CompiledProject) -> Iterator[tuple[str, str, str, str | None, Location]]:
    """Every source and sink: what messages call it, its key, its format, what the key says and where."""
    for table in declared_sources(compiled.project.sources):
        place = table.places.get("class", table.location)
        yield f"source `{table.full_name}`", "class", table.format, table.python, place
    for sink in compiled.project.sinks:
        place = sink.places.get("function", sink.location)
        yield f"sink `{sink.name}`", "function", sink.format, sink.python, place


def _missing(what: str, key: str, location: Location) -> Finding:
    return Finding(
        "missing-key",
        f"{what} has the format python but no key `{key}`",
        "the format python needs the name of a class or function in the python/ folder",
        f"for example, add {key}: alerts:Alerts for a definition in python/alerts.py",
        location,
    )


def _unused(what: str, key: str, format_name: str, location: Location) -> Finding:
    return Finding(
        "unknown-key",
        f"{what} has the key `{key}`, but its format is {format_name}",
        "only the format python runs code of the project",
        "set format: python, or remove the key",
        location,
    )


def _no_class(what: str, reference: str, location: Location) -> Finding:
    return Finding(
        "python-name",
        f"{what} is read by `{reference}`, which is not a class",
        "a source of format python must be a DataSource of pyspark.sql.datasource",
        "name a class that derives from DataSource",
        location,
    )
