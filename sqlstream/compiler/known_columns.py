"""The columns of any node, as far as they are known without Spark."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.flow.operators.inputs import seed_node, source_node
from sqlstream.compiler.node_ids import SEED, kind_of, seed_id
from sqlstream.project.types.types import Field, Unknown


def known_columns(compiled: CompiledProject, node_id: str) -> tuple[Field, ...] | None:
    """Returns the columns of a node as far as they are known without Spark, None where their names are not."""
    project = compiled.project
    if node_id in compiled.models:
        columns = compiled.columns.get(node_id)
    elif kind_of(node_id) == SEED:
        seed = next(seed for seed in project.seeds if seed_id(project.name, seed.name) == node_id)
        columns = seed_node(project.name, seed).columns
    else:
        columns = source_node(project.name, compiled.sources[node_id]).columns
    if columns is None:
        return None
    return tuple(Field(column.name, column.type or Unknown("unknown")) for column in columns)
