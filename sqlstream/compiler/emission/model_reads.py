"""How a query gets the rows of each model that it reads: it computes them itself, or it reads what is stored."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.kept_state import kept_state
from sqlstream.compiler.flow.nodes import Node


@dataclass(frozen=True)
class ModelRead:
    """A model that a query reads: as its stored output, or by computing it. `queries` counts the queries that read it
    in the same way. `state` names the operators of the model that keep state: each query that computes it has its own.
    """

    model: str
    is_stored: bool
    queries: int
    state: tuple[str, ...] = ()


def reads_of(compiled: CompiledProject, model: CompiledModel) -> dict[str, bool]:
    """Returns the models that the SQL of `model` reads, and whether it reads each as a stored output."""
    nodes = [read.node_id for read in model.reads]
    read = [(node, compiled.stored.get(node) or compiled.models.get(node)) for node in nodes]
    return {found.name: node in compiled.stored for node, found in read if found is not None}


def explain_reads(compiled: CompiledProject, model: CompiledModel, tree: Node) -> tuple[ModelRead, ...]:
    """Returns every model that the query of `model` reads, directly or through others. `tree` are its operators."""
    upstream = compiled.upstream(model.unique_id)
    queries = [item for item in compiled.models.values() if item.output is not None]
    parts = {item.unique_id: {item.unique_id, *compiled.upstream(item.unique_id)} for item in queries}
    state: dict[str, dict[str, None]] = {}
    for operator in tree.walk():
        kept = kept_state(operator)
        if kept is not None:
            state.setdefault(operator.where.model, {})[kept] = None
    found = []
    for node in (node for node in (*compiled.models, *compiled.stored) if node in upstream):
        count = sum(node in part for part in parts.values())
        if node in compiled.stored:
            found.append(ModelRead(compiled.stored[node].name, is_stored=True, queries=count))
        else:
            own = tuple(state.get(node, ()))
            found.append(ModelRead(compiled.models[node].name, is_stored=False, queries=count, state=own))
    return tuple(found)
