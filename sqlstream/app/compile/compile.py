"""`sqlstream compile`: writes the SQL that will run, and reports every finding that needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.load import Loaded, try_load
from sqlstream.app.loading.selected_findings import adding_project_errors, check_selected, findings_of_selection
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding


@dataclass(frozen=True)
class CompileOutput:
    """The compiled project, the selected models (parents first), and the warnings and infos about them and about the
    project. `nodes` are the unique ids of all selected nodes.
    """

    loaded: Loaded
    models: tuple[CompiledModel, ...]
    findings: tuple[Finding, ...]
    nodes: tuple[str, ...]


def compile_models(request: ProjectRequest, selection: Selection = EVERYTHING) -> CompileOutput:
    """Compiles the whole project, writes target/compiled/ for the selected models and target/manifest.json.

    Raises: FindingsError.
    """
    attempt = try_load(request)
    loaded = attempt.readable()
    with adding_project_errors(attempt, selection):
        compiled = choose(loaded, selection)
    check_selected(attempt, loaded, compiled.nodes, request.notify)
    write_compiled(compiled.loaded, compiled.models)
    return compiled


def choose(loaded: Loaded, selection: Selection) -> CompileOutput:
    """Returns the selected models of a loaded project, with their findings. Raises: FindingsError."""
    chosen, unmatched = select(loaded.compiled, selection)
    models = tuple(loaded.compiled.models[node] for node in chosen if node in loaded.compiled.models)
    return CompileOutput(
        loaded, models, (*findings_of_selection(loaded.compiled, loaded.findings, chosen), *unmatched), chosen
    )
