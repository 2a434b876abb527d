"""What Spark refuses of a project's nodes, and which of that the compiler has already said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding
from sqlstream.location import Location

UNANALYSED = frozenset({
    "ambiguous-column", "column-count", "missing-ref", "not-grouped", "stream-subquery", "unknown-alias",
    "unknown-column", "unknown-field", "unknown-function",
})  # fmt: skip
"""Errors of the compiler for which Spark refuses to analyse the very text that they are in."""


@dataclass(frozen=True)
class SparkRefusal:
    """What Spark refuses of one node: a source or seed, the SQL of a model, or the query that a terminal model becomes
    (`is_query`), which is made of all that the model reads.
    """

    node_id: str
    is_query: bool
    finding: Finding


def unexplained(
    compiled: CompiledProject, errors: Sequence[Finding], refusals: Iterable[SparkRefusal]
) -> tuple[Finding, ...]:
    """Returns the findings of those `refusals` that none of the compiler's `errors` is about.

    The compiler says the same more plainly, and Spark says only the first thing that is wrong with a text.
    """
    return tuple(item.finding for item in refusals if not any(_explains(compiled, error, item) for error in errors))


def is_about(compiled: CompiledProject, finding: Finding, model: CompiledModel) -> bool:
    """Returns whether `finding` lies in what the query of `model` is made of: models, sources or its sink."""
    if any(_is_in(finding, part) for part in _parts(compiled, model)):
        return True
    sinks = [model.output.location] if model.output is not None else []
    return finding.location in (*_declared(compiled, model), *sinks)


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
        return error.code in UNANALYSED and _is_in(error, model) and here in _beginnings(compiled, model)
    if refusal.finding.code != "output-mode":
        return error.code == refusal.finding.code and _is_in(error, model)
    in_sql = any(_is_in_sql(error, part) for part in _parts(compiled, model))
    return in_sql or place in _declared(compiled, model)


def _beginnings(compiled: CompiledProject, model: CompiledModel) -> tuple[Location, Location]:
    """The places of a refusal that names none: the model's file, and the first word of its SQL."""
    blank = len(model.sql) - len(model.sql.lstrip())
    return model.file.location, compiled.locate(model.unique_id, blank).location


def _is_in(error: Finding, model: CompiledModel) -> bool:
    places = [place for place in (error.location, *error.calls) if place is not None]
    return any(place.path == model.file.path or place == model.file.location for place in places)


def _is_in_sql(error: Finding, model: CompiledModel) -> bool:
    """Whether `error` is about the SQL of `model`: those about its configuration stand where that is said."""
    return _is_in(error, model) and error.location not in model.config_places.values()


def _parts(compiled: CompiledProject, model: CompiledModel) -> list[CompiledModel]:
    """The models that the query of `model` is made of."""
    nodes = (model.unique_id, *compiled.graph.ancestors(model.unique_id))
    return [compiled.models[node] for node in nodes if node in compiled.models]


def _declared(compiled: CompiledProject, model: CompiledModel) -> Iterator[Location]:
    """Where the sources that the query of `model` reads are declared."""
    for table in compiled.sources_of(model.unique_id):
        yield from (table.location, *table.places.values())
