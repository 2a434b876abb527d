"""Which findings belong to a selection: those of its nodes, of all that these read, and of the project as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlstream.codes import BRIEF
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import model_id, seed_id
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.values import Sink


def findings_of_selection(
    compiled: CompiledProject, findings: Sequence[Finding], chosen: Collection[str]
) -> tuple[Finding, ...]:
    """Returns the findings about the `chosen` nodes, all that they read, the sinks that they write to, and the project.

    A finding is about the project if it belongs to no node and no sink, such as one in project.yml. If every node is
    chosen, all findings are returned.
    """
    if not set(compiled.graph.order) - set(chosen):
        return tuple(findings)
    within = set(chosen).union(*(compiled.graph.ancestors(node) for node in chosen if node in compiled.graph.parents))
    selected = [compiled.models[node] for node in chosen if node in compiled.models]
    within |= {_sink_id(model.output.sink) for model in selected if model.output is not None}
    owners = _Owners(compiled, has_columns=any(finding.code == "declared-column" for finding in findings))
    kept = []
    for finding in findings:
        owned_by = set() if finding.code in BRIEF else owners.of(finding)
        if not owned_by or owned_by & within:
            kept.append(finding)
    return tuple(kept)


class _Owners:
    """What each file and each place of YAML belongs to: unique ids of nodes and sinks.

    Finding the places of all columns takes time, so they are known only `has_columns`.
    """

    def __init__(self, compiled: CompiledProject, *, has_columns: bool) -> None:
        project = compiled.project
        self._files = {
            file.path: model_id(project.name, file.name) for file in project.models if file.declared_at is None
        }
        self._files |= {seed.path: seed_id(project.name, seed.name) for seed in project.seeds}
        self._places: dict[Location, set[str]] = {}
        for node, table in compiled.sources.items():
            self._add(node, (table.location, *table.places.values()))
        for sink in project.sinks:
            self._add(_sink_id(sink.name), _places_of_sink(sink))
        for node, model in compiled.models.items():
            self._add(node, _places_of_model(model))
            for column in model.file.columns if has_columns else ():
                self._add(node, column.places.values())

    def of(self, finding: Finding) -> set[str]:
        """Returns all that a finding is about."""
        places = [place for place in (finding.location, *finding.calls) if place is not None]
        found = {self._files[place.path] for place in places if place.path in self._files}
        return found.union(*(self._places.get(place, ()) for place in places))

    def _add(self, owner: str, places: Iterable[Location]) -> None:
        for place in places:
            self._places.setdefault(place, set()).add(owner)


def _sink_id(name: str) -> str:
    return f"sink.{name}"


def _places_of_sink(sink: Sink) -> Iterator[Location]:
    yield from (sink.location, *sink.places.values())


def _places_of_model(model: CompiledModel) -> Iterator[Location]:
    yield from model.config_places.values()
    yield from (place for place in (model.file.properties_location, model.file.declared_at) if place is not None)
