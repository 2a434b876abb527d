"""Analyzes a query again to explain it: when it emits its rows, and what it reads. Unlike `examples.py`, this loads
sqlglot.
"""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission.examples import Emission, explain_emission
from sqlstream.compiler.emission.model_reads import ModelRead, explain_reads
from sqlstream.compiler.flow.analyse import analyse_models
from sqlstream.compiler.flow.nodes import Node


def emission_of_query(compiled: CompiledProject, model: CompiledModel) -> Emission:
    """Returns when the query of the terminal model `model` emits its rows."""
    return explain_emission(model, _tree(compiled, model), compiled.project.target.spark)


def reads_of_query(compiled: CompiledProject, model: CompiledModel) -> tuple[ModelRead, ...]:
    """Returns how the query of the terminal model `model` gets the rows of each model that it reads."""
    return explain_reads(compiled, model, _tree(compiled, model))


def _tree(compiled: CompiledProject, model: CompiledModel) -> Node:
    upstream = compiled.graph.ancestors(model.unique_id) | {model.unique_id}
    models = {node: item for node, item in compiled.models.items() if node in upstream}
    return analyse_models(compiled.project, models)[model.unique_id].node
