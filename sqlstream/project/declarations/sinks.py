"""Sinks as values. Values that can contain Jinja over `model` stay as written."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.project.configuration.documents import SinkDocument
from sqlstream.project.configuration.resources import Resources, places_of, written_keys
from sqlstream.project.configuration.validate import Path, SeenNames
from sqlstream.project.values import Sink
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
    location, keys = locate(node, (*path, "name")), written_keys(written, path)
    return Sink.model_construct(**vars(sink), location=location, places=places_of(node, path), written=keys)
