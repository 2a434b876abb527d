"""Builds the state signature of a prepared query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.spark.running.optimized_plan import read_optimized_plan
from sqlstream.state.signature.operators import PlanReader
from sqlstream.state.signature.signature import FORMAT, StateSignature


def state_signature(
    compiled: CompiledProject,
    model: CompiledModel,
    frame: DataFrame,
    form: int = FORMAT,
    order: Sequence[str] = (),
    names: Mapping[str, Mapping[str, str]] | None = None,
) -> StateSignature | None:
    """Returns the signature of the stateful query `frame` of `model`, in the format `form`. None if Spark's plan is not
    available or cannot be compared. `order` are the sources of the signature to compare it with, as in
    `StateSignature.sources`; `names` are the names of columns there, by source and name, where they differ.
    """
    plan = read_optimized_plan(frame, has_try=_can_call_try(compiled, model), form=form)
    if plan is None:
        return None
    reader = PlanReader(form, order, names)
    try:
        reader.read(plan)
    except RecursionError:
        return None
    if not reader.operators:  # this Spark shows them in a way that is unknown here
        return None
    if form > 1 and reader.has_unresolved:
        return None
    return StateSignature(
        tuple(reader.operators),
        model.config.output_mode,
        tuple(sorted(reader.watermarks)),
        frame.sparkSession.version,
        reader.calls_python,
        form,
        tuple(sorted(reader.functions)),
    )


def _can_call_try(compiled: CompiledProject, model: CompiledModel) -> bool:
    nodes = compiled.upstream(model.unique_id) | {model.unique_id}
    parts = (compiled.models[node] for node in nodes if node in compiled.models)
    return any(part.file.is_python or "try_" in part.sql.lower() for part in parts)
