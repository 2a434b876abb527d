"""Findings from Spark about a project's nodes, without those that the compiler has already reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding
from sqlstream.location import Location

UNANALYSED = frozenset({
    "ambiguous-column", "column-count", "missing-ref", "not-grouped", "stream-subquery", "unknown-alias",
    "unknown-column", "unknown-field", "unknown-function",
})  # fmt: skip
"""Compiler errors with which Spark rejects the same SQL."""


UNSTARTED = frozenset({"join-without-key", "output-mode", "second-watermark", "type-mismatch"})
"""Codes of refusals of a whole query: Spark does not say which part of its SQL it cannot stream."""


@dataclass(frozen=True)
class SparkRefusal:
    """An error of Spark in one node: a source or seed, the SQL of a model, or the query of a terminal model
    (`is_query`), which includes everything upstream.
    """

    node_id: str
    is_query: bool
    finding: Finding


def unexplained(
    compiled: CompiledProject, errors: Sequence[Finding], refusals: Iterable[SparkRefusal]
) -> tuple[Finding, ...]:
    """Returns the findings of the `refusals` that none of the compiler's `errors` explains.

    The compiler's errors are clearer and complete: Spark reports only the first error in a text.
    """
    return tuple(item.finding for item in refusals if not any(_explains(compiled, error, item) for error in errors))


def is_about(compiled: CompiledProject, finding: Finding, model: CompiledModel) -> bool:
    """Returns whether `finding` is in the query of `model`: in an upstream model, a source or the sink."""
    if any(_is_in(finding, part) for part in _parts(compiled, model)):
        return True
    is_sink = any(finding.location == output.location for output in model.outputs)
    return is_sink or finding.location in _declared(compiled, model)


def _explains(compiled: CompiledProject, error: Finding, refusal: SparkRefusal) -> bool:
    here, place = refusal.finding.location, error.location
    if place is None or here is None:
        return False
    if (here.path, here.line) == (place.path, place.line):
        return True
    model = compiled.models.get(refusal.node_id)
    if model is None:
        return False
    if not refusal.is_query:
        return error.code in UNANALYSED and _is_in(error, model) and _is_unlocated(refusal, compiled, model)
    if refusal.finding.code not in UNSTARTED:
        return error.code == refusal.finding.code and _is_in(error, model)
    return place in _declared(compiled, model) or any(
        _is_in(error, part) and place not in part.config_locations.values() for part in _parts(compiled, model)
    )


def _is_unlocated(refusal: SparkRefusal, compiled: CompiledProject, model: CompiledModel) -> bool:
    """Whether Spark named no place: the finding is at the model's file or at the first word of its SQL."""
    blank = len(model.sql) - len(model.sql.lstrip())
    return refusal.finding.location in (model.file.location, compiled.locate(model.unique_id, blank).location)


def _is_in(error: Finding, model: CompiledModel) -> bool:
    places = [place for place in (error.location, *error.calls) if place is not None]
    return any(place.path == model.file.path or place == model.file.location for place in places)


def _parts(compiled: CompiledProject, model: CompiledModel) -> list[CompiledModel]:
    """Returns `model` and its upstream models."""
    nodes = (model.unique_id, *compiled.graph.ancestors(model.unique_id))
    return [compiled.models[node] for node in nodes if node in compiled.models]


def _declared(compiled: CompiledProject, model: CompiledModel) -> list[Location]:
    """Returns the locations in the declarations of the sources upstream of `model`."""
    tables = compiled.tables_of(model.unique_id)
    return [location for table in tables for location in (table.location, *table.locations.values())]
