"""Models with several sinks: the first sink belongs to the model itself, each other one to a model of its rows."""

from __future__ import annotations

from pathlib import PurePosixPath

from sqlstream.location import Location
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.values import ModelFile


def model_of_sink(file: ModelFile, place: Location, config: ModelConfig, sink: str) -> tuple[ModelFile, ModelConfig]:
    """Returns the model that writes the rows of `file` to `sink`, one of its further sinks, and its configuration.

    `place` is the location of the sinks. The query has its own checkpoint, and the same trigger, mode and keys.
    """
    name = query_of_sink(file.name, sink)
    source = ModelFile(
        name=name,
        path=str(PurePosixPath(file.path).with_name(f"{name}.sql")),
        text=f"select *\nfrom {{{{ ref('{file.name}') }}}}\n",
        folders=file.folders,
        description=file.description,
        columns=(),
        configs=(),
        properties_location=file.properties_location,
        written=file.written,
        declared_at=place,
        rows_of=file.name,
    )
    changed = {
        "sink": sink,
        "materialized": "view",
        "deduplicate": (),
        "checkpoint": config.checkpoint and query_of_sink(config.checkpoint, sink),
        "previous_name": config.previous_name and query_of_sink(config.previous_name, sink),
    }
    return source, config.model_copy(update=changed)


def query_of_sink(model: str, sink: str) -> str:
    """Returns the name of the query that writes `model` to a further sink."""
    return f"{model}__{sink}"
