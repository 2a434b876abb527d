"""The models, seeds, sources and exposures of a compiled project, as selectors see them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import EXPOSURE, exposure_id, seed_id, source_id
from sqlstream.compiler.selection.select import SelectableNode
from sqlstream.project.values import Exposure, Seed, SourceTable


def selectable_nodes(compiled: CompiledProject) -> Mapping[str, SelectableNode]:
    """Returns the enabled models and exposures, the seeds and the source tables by unique id."""
    project = compiled.project
    nodes = [_model_node(project.name, model) for model in compiled.models.values()]
    nodes += [_source_node(project.name, table) for table in project.sources]
    nodes += [_seed_node(project.name, seed) for seed in project.seeds]
    nodes += [_exposure_node(project.name, exposure) for exposure in project.exposures]
    return {node.unique_id: node for node in nodes}


def _model_node(project: str, model: CompiledModel) -> SelectableNode:
    properties = model.file.properties_location
    return SelectableNode(
        unique_id=model.unique_id,
        resource_type="model",
        name=model.name,
        fqn=(project, *model.file.folders, *model.file.name_words),
        path=model.file.path,
        tags=frozenset(model.config.tags),
        config=model.config.plain(),
        sinks=model.config.query_sinks,
        properties_path=properties.path if properties else None,
        version=model.file.version,
    )


def _source_node(project: str, table: SourceTable) -> SelectableNode:
    config: Mapping[str, object] = {"enabled": True, "tags": list(table.tags), "meta": dict(table.meta)}
    return SelectableNode(
        unique_id=source_id(project, table),
        resource_type="source",
        name=table.name,
        fqn=(project, table.source, table.name),
        path=table.location.path,
        tags=frozenset(table.tags),
        config=config,
        source_name=table.source,
    )


def _seed_node(project: str, seed: Seed) -> SelectableNode:
    config: dict[str, object] = {"enabled": True, "tags": [], "meta": {}}
    config |= {key: located.value for key, located in seed.config.items()}
    tags = config["tags"] if isinstance(config["tags"], list) else [config["tags"]]
    return SelectableNode(
        unique_id=seed_id(project, seed.name),
        resource_type="seed",
        name=seed.name,
        fqn=(project, *PurePosixPath(seed.path).parent.parts[1:], seed.name),
        path=seed.path,
        tags=frozenset(str(tag) for tag in tags),
        config=config,
        properties_path=seed.properties_location.path if seed.properties_location else None,
    )


def _exposure_node(project: str, exposure: Exposure) -> SelectableNode:
    return SelectableNode(
        unique_id=exposure_id(project, exposure.name),
        resource_type=EXPOSURE,
        name=exposure.name,
        fqn=(project, *exposure.folders, exposure.name),
        path=exposure.location.path,
        tags=frozenset(exposure.tags),
        config=exposure.plain_config,
    )
