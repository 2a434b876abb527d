"""A query analyzed again, and when its rows come out; this loads sqlglot, which `examples.py` does not."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission.examples import Emission, explain_emission
from sqlstream.compiler.flow.analyse import analyse_models


def emission_of_query(compiled: CompiledProject, model: CompiledModel) -> Emission:
    """Returns when the rows of `model` come out, as a query of its own."""
    upstream = compiled.graph.ancestors(model.unique_id) | {model.unique_id}
    models = {node: item for node, item in compiled.models.items() if node in upstream}
    tree = analyse_models(compiled.project, models)[model.unique_id].node
    return explain_emission(model, tree, compiled.project.target.spark)
