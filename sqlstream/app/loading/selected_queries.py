"""The queries that a selection means, with those of further sinks and of quarantines of corrupt records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlstream.app.loading.load import LoadAttempt, Loaded
from sqlstream.app.loading.selected_findings import adding_project_errors, check_selected
from sqlstream.app.loading.selecting import SelectableTest, nodes_excluded, select, terminal_among, terminal_models
from sqlstream.app.request import EVERYTHING, Selection
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import model_id, source_id
from sqlstream.errors import Finding
from sqlstream.project.declarations.on_corrupt import quarantine_name


@dataclass(frozen=True)
class SelectedQueries:
    """The `chosen` nodes of a selection and their queries, upstream first. `unmatched` warns about selectors that
    match nothing.
    """

    chosen: tuple[str, ...]
    models: tuple[CompiledModel, ...]
    unmatched: tuple[Finding, ...]

    @property
    def involved(self) -> frozenset[str]:
        """The chosen nodes and the models of all queries."""
        return frozenset(self.chosen).union(model.unique_id for model in self.models)


def select_queries(
    attempt: LoadAttempt,
    loaded: Loaded,
    selection: Selection,
    notify: Callable[[str], None],
    tests: Sequence[SelectableTest] | None = None,
) -> SelectedQueries:
    """Returns the queries of `selection`, for `run`, `build` and `plan`. There may be none if it can also name `tests`.
    Passes a line about errors in other models to `notify`.

    Raises: FindingsError if the selection is invalid or selects no query, or if an error belongs to what it selects.
    """
    compiled = loaded.compiled
    with adding_project_errors(attempt, selection):
        chosen, unmatched = select(compiled, selection, tests or ())
        may_be_none = tests is not None or not chosen  # nothing has changed since a saved state
        models = terminal_among(compiled, chosen) if may_be_none else terminal_models(compiled, chosen)
    found = SelectedQueries(chosen, with_added_queries(compiled, models, selection), unmatched)
    check_selected(attempt, loaded, found.involved, notify)
    return found


def with_added_queries(
    compiled: CompiledProject, models: Sequence[CompiledModel], selection: Selection
) -> tuple[CompiledModel, ...]:
    """Returns `models` with the queries of their further sinks and the quarantines of their sources."""
    return add_quarantines(compiled, add_further_sinks(compiled, models, selection), selection)


def in_shard(models: Sequence[CompiledModel], selection: Selection) -> tuple[CompiledModel, ...]:
    """Returns those of the selected queries that are in the shard of the selection; without one, all."""
    shard = selection.shard
    return tuple(model for model in models if shard is None or shard.has(model.query_id))


def add_quarantines(
    compiled: CompiledProject, models: Sequence[CompiledModel], selection: Selection
) -> tuple[CompiledModel, ...]:
    """Returns `models` and the quarantines of the sources that they read, in the order of the graph.

    Quarantines that --exclude or an `exclude` in selectors.yml names are left out. Another process may run them, and
    only one process can use a checkpoint.
    """
    project = compiled.project
    chosen = {model.unique_id for model in models}
    read = chosen.union(*(compiled.upstream(node) for node in chosen))
    wanted = {
        model_id(project.name, quarantine_name(table))
        for table in project.sources
        if table.corrupt_of is not None and source_id(project.name, table.corrupt_of) in read
    }
    added = wanted & compiled.models.keys() - chosen
    if added and selection.nodes is None:
        added -= nodes_excluded(compiled, selection)
    if not added or selection.nodes is not None:
        return tuple(models)
    return tuple(model for node, model in compiled.models.items() if node in chosen | added and model.output)


def keep_quarantines(
    compiled: CompiledProject, models: Sequence[CompiledModel], chosen: Collection[str], parallel: Collection[str]
) -> tuple[tuple[CompiledModel, ...], frozenset[str]]:
    """Returns `models` without the quarantines that only `parallel` versions need, and the ids of the quarantines that
    a full refresh keeps.

    Both are about quarantines that are not among the `chosen` nodes. The records of a source do not depend on the
    version that reads it, and the process of the current version may run its quarantine.
    """
    added = {model.unique_id for model in models if is_quarantine(model) and model.unique_id not in chosen}
    others = [model for model in models if model.unique_id not in added and model.name not in parallel]
    needed = {model.unique_id for model in add_quarantines(compiled, others, EVERYTHING)}
    left = tuple(model for model in models if model.unique_id not in added - needed)
    return left, frozenset(added & needed)


def add_further_sinks(
    compiled: CompiledProject, models: Sequence[CompiledModel], selection: Selection
) -> tuple[CompiledModel, ...]:
    """Returns `models` and the queries that write their rows to further sinks, in the order of the graph.

    Those that --exclude or an `exclude` in selectors.yml names are left out.
    """
    chosen, names = {model.unique_id for model in models}, {model.name for model in models}
    added = {node for node, model in compiled.models.items() if model.file.rows_of in names} - chosen
    if added and selection.nodes is None:
        added -= nodes_excluded(compiled, selection)
    if not added or selection.nodes is not None:
        return tuple(models)
    return tuple(model for node, model in compiled.models.items() if node in chosen | added)


def quarantines_to_end(models: Sequence[CompiledModel]) -> frozenset[str]:
    """Returns the ids of the quarantines among `models` that end when they have read everything. These are all
    quarantines, if all other streams end by themselves, so that the run also ends.
    """
    streams = [model for model in models if model.streaming]
    others = [model for model in streams if not is_quarantine(model)]
    if not others or not all(model.config.trigger.facts.ends for model in others):
        return frozenset()
    return frozenset(model.unique_id for model in streams if is_quarantine(model))


def is_quarantine(model: CompiledModel) -> bool:
    """Returns whether the query writes the corrupt records of a source."""
    return model.file.has_corrupt_records
