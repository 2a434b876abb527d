"""Analyzes a query again to explain when it emits its rows. Unlike `examples.py`, this loads sqlglot."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission.examples import Emission, explain_emission
from sqlstream.compiler.flow.analyse import analyse_models


def emission_of_query(compiled: CompiledProject, model: CompiledModel) -> Emission:
    """Returns when the query of the terminal model `model` emits its rows."""
    upstream = compiled.graph.ancestors(model.unique_id) | {model.unique_id}
    models = {node: item for node, item in compiled.models.items() if node in upstream}
    tree = analyse_models(compiled.project, models)[model.unique_id].node
    return explain_emission(model, tree, compiled.project.target.spark)
