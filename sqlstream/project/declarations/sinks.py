"""Sinks as values. Values that can contain Jinja over `model` stay as written."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.project.configuration.documents import SinkDocument
from sqlstream.project.configuration.resources import Resources, SeenNames, places_of, written_keys
from sqlstream.project.configuration.validate import Path
from sqlstream.project.values import Located, RecordFormat, Sink
from sqlstream.project.yaml import YamlMapping, locate


def build_sinks(resources: Resources, findings: list[Finding]) -> tuple[Sink, ...]:
    """Returns all sinks, sorted by name."""
    names = SeenNames("sinks")
    sinks: list[Sink] = []
    for file, (document, node) in resources.documents.items():
        written = resources.written[file]
        sinks += [_build_sink(sink, node, written, ("sinks", index)) for index, sink in enumerate(document.sinks)]
    new = (sink for sink in sinks if names.add(sink.name, sink.location, findings))
    return tuple(sorted(new, key=lambda sink: sink.name))


def _build_sink(sink: SinkDocument, node: YamlMapping, written: YamlMapping, path: Path) -> Sink:
    options = {key: Located(value, locate(node, (*path, "options", key))) for key, value in sink.options.items()}
    return Sink(
        name=sink.name,
        format=sink.format,
        path=Located(sink.path, locate(node, (*path, "path"))) if sink.path is not None else None,
        partition_by=sink.partition_by,
        options=options,
        description=sink.description,
        tags=sink.tags,
        meta=sink.meta,
        location=locate(node, (*path, "name")),
        places=places_of(node, path),
        written=written_keys(written, path),
        table=Located(sink.table, locate(node, (*path, "table"))) if sink.table is not None else None,
        python=sink.function,
        record=RecordFormat(sink.value_format, sink.key, sink.headers),
    )
