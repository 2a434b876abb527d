"""The findings that belong to a selection: those of its nodes, of everything upstream, and of the whole project.

Other errors block nothing. Commands only print their number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from sqlstream.app.loading.load import LoadAttempt, Loaded
from sqlstream.app.request import EVERYTHING, Selection
from sqlstream.codes import BRIEF
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import model_id, seed_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.values import Sink

OF_COLUMNS = ("contract", "declared-column", "unenforced-constraint")
"""The codes of findings at the declared columns of models."""


@contextmanager
def adding_project_errors(attempt: LoadAttempt, selection: Selection) -> Iterator[None]:
    """Adds the errors of the project to those that selecting raises in the body: the selected node may be in a broken
    file. Without a selection, only the project's findings are raised. Raises: FindingsError.
    """
    try:
        yield
    except FindingsError as error:
        if attempt.errors and selection == EVERYTHING:
            raise FindingsError(attempt.findings) from error
        raise FindingsError((*attempt.errors, *error.findings)) from error


def check_selected(
    attempt: LoadAttempt, loaded: Loaded, chosen: Collection[str], notify: Callable[[str], None]
) -> None:
    """Prints the number of errors in the project if none of them belongs to the selection.

    Raises: FindingsError if an error belongs to a `chosen` node, to a node upstream, or to the whole project.
    """
    errors = selected_errors(attempt, loaded, chosen)
    if errors:
        warnings = findings_of_selection(loaded.compiled, loaded.findings, chosen)
        raise FindingsError((*errors, *warnings))
    if attempt.errors:
        notify(unselected_errors_line(len(attempt.errors)))


def selected_errors(attempt: LoadAttempt, loaded: Loaded, chosen: Collection[str]) -> tuple[Finding, ...]:
    """Returns the errors of the `chosen` nodes, of everything upstream, and of the whole project."""
    return findings_of_selection(loaded.compiled, attempt.errors, chosen)


def unselected_errors_line(count: int) -> str:
    """Returns the line about `count` errors that do not block the command."""
    return f"{plural(count, 'error')} in models that are not selected; `sqlstream compile` shows them"


def findings_of_selection(
    compiled: CompiledProject, findings: Sequence[Finding], chosen: Collection[str]
) -> tuple[Finding, ...]:
    """Returns the findings of the `chosen` nodes, everything upstream, their sinks, and the whole project.

    A finding belongs to the whole project if it belongs to no node and no sink, such as one in project.yml. If every
    node is chosen, all findings are returned.
    """
    if not set(compiled.graph.order) - set(chosen):
        return tuple(findings)
    within = set(chosen).union(*(compiled.graph.ancestors(node) for node in chosen if node in compiled.graph.parents))
    selected = [compiled.models[node] for node in chosen if node in compiled.models]
    within |= {_sink_id(output.sink) for model in selected for output in compiled.outputs_of(model)}
    owners = _Owners(compiled, has_columns=any(finding.code in OF_COLUMNS for finding in findings))
    return tuple(
        finding
        for finding in findings
        if finding.code in BRIEF or not (owned_by := owners.of(finding)) or owned_by & within
    )


class _Owners:
    """The nodes and sinks that each file and each YAML location belongs to, by their unique ids.

    Locations of columns are included only with `has_columns`, because collecting them takes time.
    """

    def __init__(self, compiled: CompiledProject, *, has_columns: bool) -> None:
        project = compiled.project
        self._files = {
            file.path: model_id(project.name, file.name) for file in project.models if file.declared_at is None
        }
        self._files |= {seed.path: seed_id(project.name, seed.name) for seed in project.seeds}
        self._places: dict[Location, set[str]] = {}
        for node, table in compiled.sources.items():
            self._add(node, (table.location, *table.locations.values()))
        for sink in project.sinks:
            self._add(_sink_id(sink.name), _locations_of_sink(sink))
        for node, model in compiled.models.items():
            self._add(node, _locations_of_model(model))
            for places in model.file.column_locations.values() if has_columns else ():
                self._add(node, places.values())

    def of(self, finding: Finding) -> set[str]:
        """Returns the nodes and sinks of a finding."""
        places = [place for place in (finding.location, *finding.calls) if place is not None]
        found = {self._files[place.path] for place in places if place.path in self._files}
        return found.union(*(self._places.get(place, ()) for place in places))

    def _add(self, owner: str, places: Iterable[Location]) -> None:
        for place in places:
            self._places.setdefault(place, set()).add(owner)


def _sink_id(name: str) -> str:
    return f"sink.{name}"


def _locations_of_sink(sink: Sink) -> Iterator[Location]:
    yield from (sink.location, *sink.locations.values())


def _locations_of_model(model: CompiledModel) -> Iterator[Location]:
    yield from model.config_locations.values()
    yield from (place for place in (model.file.properties_location, model.file.declared_at) if place is not None)
    yield from (constraint.location for constraint in model.file.constraints)
