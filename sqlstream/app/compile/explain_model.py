"""`sqlstream compile --explain MODEL`: shows when a query emits its rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.app.loading.load import try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, place_in
from sqlstream.compiler.emission import Emission, ModelRead
from sqlstream.compiler.spark_findings import is_about
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.trees import emission_of_query, reads_of_query
from sqlstream.errors import Finding, UsageError
from sqlstream.location import Location
from sqlstream.project.wording import did_you_mean


@dataclass(frozen=True)
class Explanation:
    """A terminal model, when its query emits rows, and how it reads other models. `emission` is None if the query
    cannot run; `errors` say why.

    `is_foreseen` is False if the target's settings change how Spark interprets queries.
    """

    compiled: CompiledProject
    model: CompiledModel
    emission: Emission | None
    reads: tuple[ModelRead, ...]
    errors: tuple[Finding, ...]
    is_foreseen: bool

    def locate(self, where: Where, key: str) -> Location:
        """Returns the location of an operator in a model, or of the `key` in its source."""
        return place_in(self.compiled, self.compiled, where, key).location


def explain_model(request: ProjectRequest, name: str) -> Explanation:
    """Returns when the query of model `name` emits rows.

    Raises: FindingsError if nothing can be compiled; UsageError for an unknown model or a view.
    """
    attempt = try_load(request)
    compiled = attempt.compiled().compiled
    model = _terminal_model(compiled, name)
    errors = tuple(error for error in attempt.errors if is_about(compiled, error, model))
    emission = None if errors else emission_of_query(compiled, model)
    reads = () if errors else reads_of_query(compiled, model)
    return Explanation(compiled, model, emission, reads, errors, rules_apply(compiled.project.target))


def emission_of(compiled: CompiledProject, name: str) -> Emission:
    """Returns when the query of model `name` emits rows."""
    return emission_of_query(compiled, _terminal_model(compiled, name))


def _terminal_model(compiled: CompiledProject, name: str) -> CompiledModel:
    model = compiled.model_named(name)
    if model is None:
        names = [each.name for each in compiled.models.values()]
        raise UsageError(f"there is no model `{name}`; {did_you_mean(name, names)}")
    if model.output is None:
        below = compiled.graph.descendants(model.unique_id)
        queries = [item.name for node, item in compiled.models.items() if node in below and item.output is not None]
        advice = f"explain a query that reads it: {', '.join(queries)}" if queries else "and no query reads it"
        raise UsageError(f"`{name}` has no sink, so it is a view and emits no rows itself; {advice}")
    return model
