"""The connectors that a compiled project needs, by its formats, JDBC URLs and paths."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import closure_of
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.connectors.connectors import (
    CONNECTORS,
    FILE_SYSTEMS,
    JDBC_DRIVERS,
    Connector,
    ConnectorRelease,
)
from sqlstream.project.files.paths import DEFAULT_FILE_SYSTEMS, scheme_of
from sqlstream.project.formats.formats import format_of
from sqlstream.project.secret_text import OptionValue


@dataclass(frozen=True)
class NeededConnector:
    """A connector, and the source, sink, model or target that needs it first: its description, and the location of
    its format or path.
    """

    connector: Connector
    by: str
    location: Location


def needed_connectors(compiled: CompiledProject, models: Iterable[str] | None = None) -> dict[str, NeededConnector]:
    """Returns the connectors of the sources and outputs of `models` (unique ids; default: all) and of the target's
    storage, by name.

    Leaves out those that the target itself brings, as `packages` or `spark.jars`.
    """
    target = compiled.project.target
    used = used_connectors(compiled, models).items()
    return {name: needed for name, needed in used if not _brings(target, needed.connector)}


def used_connectors(compiled: CompiledProject, models: Iterable[str] | None = None) -> dict[str, NeededConnector]:
    """Returns the same connectors with those that the target brings."""
    found: dict[str, NeededConnector] = {}
    chosen = set(compiled.models if models is None else models)
    nodes = {*closure_of(compiled.graph.parents, chosen & compiled.graph.parents.keys()), *chosen}
    if models is None:
        nodes.update(model.unique_id for model in compiled.own_rows)
    for name, by, location in _declared(compiled, nodes):
        if name is not None:
            found.setdefault(name, NeededConnector(CONNECTORS[name], by, location))
    return found


def _declared(compiled: CompiledProject, nodes: Container[str]) -> Iterator[tuple[str | None, str, Location]]:
    """Yields the connector of each format and path, None without one, with who needs it and where."""
    target = compiled.project.target
    yield _of_path(target.storage, target), f"target `{target.name}`", target.location
    for node, table in compiled.sources.items():
        if node in nodes:
            by = f"source `{table.full_name}`"
            yield _of_format(table.format, table.options), by, table.locations.get("format", table.location)
            yield _of_path(table.path, target), by, table.locations.get("path", table.location)
            formats = {} if table.messages is None else table.messages.formats
            for key, form in formats.items():
                if form in ("avro", "protobuf"):
                    yield form, by, table.locations.get(key, table.location)
    # a project for rules has the rows of metrics and alerts among its models
    for model in {**compiled.models, **{model.unique_id: model for model in compiled.own_rows}}.values():
        for output in compiled.outputs_of(model) if model.unique_id in nodes else ():
            by = f"sink `{output.sink}`"
            yield _of_format(output.format, output.options), by, output.location
            yield _of_path(output.path, target), by, output.location
            if output.record.value_format == "avro":
                yield "avro", by, output.location
            place = model.config_locations.get("checkpoint", model.file.location)
            yield _of_path(model.config.checkpoint, target), f"the checkpoint of `{model.name}`", place


def _of_format(format_name: str, options: Mapping[str, OptionValue]) -> str | None:
    if format_name != "jdbc":
        return format_name if format_name in CONNECTORS else format_of(format_name).connector
    url = next((str(value) for name, value in options.items() if name.lower() == "url"), "")
    return next((name for start, name in JDBC_DRIVERS.items() if url.startswith(start)), None)


def _of_path(path: str | None, target: Target) -> str | None:
    """Returns the connector of the file system of a path."""
    if not path:
        return None
    default = next((str(target.spark[name]) for name in DEFAULT_FILE_SYSTEMS if name in target.spark), "")
    return FILE_SYSTEMS.get(scheme_of(path) or scheme_of(default))


def _brings(target: Target, connector: Connector) -> bool:
    """Returns whether the target names the connector's artifact itself, in any version."""
    releases = [ConnectorRelease(connector.any_spark), *connector.releases.values()]
    artifacts = {_VERSIONS.sub("", release.jars[0].split(":")[1]) for release in releases if release.jars}
    artifacts |= {connector.artifact} - {""}
    named = " ".join([*target.packages, *(str(target.spark.get(name, "")) for name in _JAR_SETTINGS)])
    return any(artifact in named for artifact in artifacts)


_VERSIONS = re.compile(r"[-_]\d.*")
"""The versions of Spark and Scala in the name of an artifact."""

_JAR_SETTINGS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
