"""The queries that quarantine corrupt records: which of them go along with a run, and when they end."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.app.loading.selecting import nodes_excluded
from sqlstream.app.request import Selection
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import model_id, source_id
from sqlstream.project.on_corrupt import quarantine_name


def with_quarantines(
    compiled: CompiledProject, models: Sequence[CompiledModel], selection: Selection
) -> tuple[CompiledModel, ...]:
    """Returns `models` with those that quarantine the corrupt records of what they read, in the order of the graph.

    Those that --exclude or an `exclude` in selectors.yml names stay out: another process may run them, and only one
    process can use a checkpoint.
    """
    project = compiled.project
    chosen = {model.unique_id for model in models}
    read = chosen.union(*(compiled.graph.ancestors(node) for node in chosen))
    wanted = {
        model_id(project.name, quarantine_name(table))
        for table in project.sources
        if table.corrupt_of is not None and source_id(project.name, table.corrupt_of) in read
    }
    added = wanted & compiled.models.keys() - chosen
    if added:
        added -= nodes_excluded(compiled, selection)
    if not added:
        return tuple(models)
    return tuple(model for node, model in compiled.models.items() if node in chosen | added and model.output)


def ends_with_others(models: Sequence[CompiledModel]) -> frozenset[str]:
    """Returns the ids of the quarantines among `models` that are to end when nothing is left to read: a run whose own
    queries all end by themselves would not end otherwise.
    """
    streams = [model for model in models if model.streaming]
    others = [model for model in streams if model.file.declared_at is None]
    if not others or not all(model.config.trigger.ends for model in others):
        return frozenset()
    return frozenset(model.unique_id for model in streams if model.file.declared_at is not None)
