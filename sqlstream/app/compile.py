"""`sqlstream compile`: the project's SQL as it will run, and every finding that needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.load import Loaded, try_load
from sqlstream.app.loading.other_errors import refuse_selected, with_errors_of
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding


@dataclass(frozen=True)
class Compiled:
    """What compiling gave: the whole project, the selected models (parents first), and the warnings and infos about
    them and about the project. `nodes` are the ids of all that is selected.
    """

    loaded: Loaded
    models: tuple[CompiledModel, ...]
    findings: tuple[Finding, ...]
    nodes: tuple[str, ...]


def compile_models(request: ProjectRequest, selection: Selection = EVERYTHING) -> Compiled:
    """Compiles the whole project, writes target/compiled/ for the selected models and target/manifest.json.

    Raises: FindingsError.
    """
    attempted = try_load(request)
    loaded = attempted.readable()
    with with_errors_of(attempted, selection):
        compiled = choose(loaded, selection)
    refuse_selected(attempted, loaded, compiled.nodes, request.notify)
    write_compiled(compiled.loaded, compiled.models)
    return compiled


def choose(loaded: Loaded, selection: Selection) -> Compiled:
    """Returns the selected models of a loaded project, with their findings. Raises: FindingsError."""
    chosen, unmatched = select(loaded.compiled, selection)
    models = tuple(loaded.compiled.models[node] for node in chosen if node in loaded.compiled.models)
    return Compiled(
        loaded, models, (*findings_of_selection(loaded.compiled, loaded.findings, chosen), *unmatched), chosen
    )
