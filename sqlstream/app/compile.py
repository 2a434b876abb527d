"""`sqlstream compile`: the project's SQL as it will run, and every finding that needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.app.artifacts import write_compiled
from sqlstream.app.loading import Loaded, load
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.selecting import select
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding


@dataclass(frozen=True)
class Compiled:
    """What compiling gave: the whole project, the selected models (parents first), and the warnings and infos."""

    loaded: Loaded
    models: tuple[CompiledModel, ...]
    findings: tuple[Finding, ...]


def compile_models(request: ProjectRequest, selection: Selection = EVERYTHING) -> Compiled:
    """Compiles the whole project, writes target/compiled/ for the selected models and target/manifest.json.

    Raises: FindingsError.
    """
    compiled = choose(load(request), selection)
    write_compiled(compiled.loaded, compiled.models)
    return compiled


def choose(loaded: Loaded, selection: Selection) -> Compiled:
    """Returns the selected models of a loaded project, with the warnings. Raises: FindingsError."""
    chosen, unmatched = select(loaded.compiled, selection)
    models = tuple(loaded.compiled.models[node] for node in chosen if node in loaded.compiled.models)
    return Compiled(loaded, models, (*loaded.findings, *unmatched))
