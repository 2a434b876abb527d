"""Analyzes a query again to explain it: when it emits its rows, and what it reads. Unlike `examples.py`, this loads
sqlglot.
"""

from __future__ import annotations

from sqlstream.compiler.analysed import analyse_models
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission.examples import Emission, ModelRead, explain_emission, explain_reads
from sqlstream.compiler.flow.nodes import Node, kept_state


def emission_of_query(compiled: CompiledProject, model: CompiledModel) -> Emission:
    """Returns when the query of the terminal model `model` emits its rows."""
    return explain_emission(model, _tree(compiled, model), compiled.project.target.spark)


def reads_of_query(compiled: CompiledProject, model: CompiledModel) -> tuple[ModelRead, ...]:
    """Returns how the query of the terminal model `model` gets the rows of each model that it reads."""
    return explain_reads(compiled, model, _tree(compiled, model))


def keeps_state(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the query of `model` keeps state. Of code in Python it says yes."""
    upstream = compiled.upstream(model.unique_id) | {model.unique_id}
    if any(compiled.models[node].file.is_python for node in upstream if node in compiled.models):
        return True
    return any(kept_state(operator) for operator in _tree(compiled, model).walk())


def _tree(compiled: CompiledProject, model: CompiledModel) -> Node:
    upstream = compiled.graph.ancestors(model.unique_id) | {model.unique_id}
    models = {node: item for node, item in compiled.models.items() if node in upstream}
    return analyse_models(compiled.project, models)[model.unique_id].node
