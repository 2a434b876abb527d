"""`sqlstream show`: shows the first rows of models, seeds and sources, or of an inline query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from sqlstream.app.loading.load import LoadAttempt, Loaded, try_load
from sqlstream.app.loading.selected_findings import unselected_errors_line
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import EVERYTHING, SHOWN_ROWS, ProjectRequest, Selection, silent
from sqlstream.app.session.signals import StopSignals, interruptible
from sqlstream.app.show.live_tables import live_rows
from sqlstream.compiler.graph import model_id
from sqlstream.compiler.spark_findings import is_about
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.files.files import find_project_root
from sqlstream.project.values import INLINE, ModelFile
from sqlstream.state.shown_rows import ShownRows


@dataclass(frozen=True)
class ShowRequest:
    """What to show: the nodes of `selection`, or the query `inline`, written like the file of a model."""

    project: ProjectRequest
    selection: Selection = EVERYTHING
    inline: str | None = None
    limit: int = SHOWN_ROWS


@dataclass(frozen=True)
class ShowResult:
    """The rows of each node, parents first, and the warnings about the selection."""

    nodes: tuple[ShownRows, ...]
    warnings: tuple[Finding, ...]


@dataclass(frozen=True)
class NodesToShow:
    """A compiled project and the ids of the nodes to show, with the warnings about the selection."""

    loaded: Loaded
    nodes: tuple[str, ...]
    warnings: tuple[Finding, ...]


def show_rows(request: ShowRequest) -> ShowResult:
    """Returns the first rows of the selected nodes: from the in-memory table of a running process if there is one, or
    else from the model as a batch query over its sources. Starts no query and writes nothing.

    Raises: FindingsError; UsageError; KeyboardInterrupt.
    """
    chosen = choose(request)
    with interruptible() as signals:
        rows = _rows_of(chosen, request, signals)
    return ShowResult(tuple(rows[node] for node in chosen.nodes), chosen.warnings)


def _rows_of(chosen: NodesToShow, request: ShowRequest, signals: StopSignals) -> dict[str, ShownRows]:
    """Returns the rows of the nodes by their ids."""
    notify = request.project.notify
    live = _live(chosen, request.limit, notify)
    others = tuple(node for node in chosen.nodes if node not in live)
    if not others:
        return live
    from sqlstream.app.show.show_session import Previews  # loads pyspark

    with closing(Previews(request.project.env, notify, signals)) as previews:
        shown = previews.show(chosen.loaded, others, request.limit)
    return live | {each.unique_id: each for each in shown}


def _live(chosen: NodesToShow, limit: int, notify: Callable[[str], None]) -> dict[str, ShownRows]:
    """Returns the rows of nodes that a running process keeps in memory, by their ids."""
    compiled = chosen.loaded.compiled
    models = (compiled.models[node] for node in chosen.nodes if node in compiled.models)
    shown = (live_rows(compiled, model, limit, notify) for model in models)
    return {each.unique_id: each for each in shown if each is not None}


def choose(request: ShowRequest) -> NodesToShow:
    """Returns the compiled project and the nodes to show.

    Raises: FindingsError if they cannot be shown. Errors elsewhere in the project are only counted.
    """
    inline = None if request.inline is None else _inline_model(request)
    attempt = try_load(request.project, inline=inline)
    loaded = attempt.compiled()
    compiled = loaded.compiled
    if inline is None:
        nodes, warnings = select(compiled, request.selection)
    else:
        nodes, warnings = (model_id(compiled.project.name, inline.name),), ()
        if nodes[0] not in compiled.models:
            raise UsageError("--inline disables itself: remove `enabled=false` from its config()")
    _check_errors(attempt, loaded, nodes, request.project.notify if inline is None else silent)
    return NodesToShow(loaded, nodes, warnings)


def _inline_model(request: ShowRequest) -> ModelFile:
    """Returns the query as a model with an unused name, which Jinja's `this` and messages show."""
    root = find_project_root(request.project.folder)
    taken = {path.stem.casefold() for folder in ("models", "seeds") for path in (root / folder).rglob("*.*")}
    names = (INLINE, *(f"{INLINE}_{number}" for number in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    return ModelFile(name, INLINE, request.inline or "", (), "", (), ())


def _check_errors(attempt: LoadAttempt, loaded: Loaded, nodes: Sequence[str], notify: Callable[[str], None]) -> None:
    """Raises: FindingsError for errors in the nodes to show. Otherwise prints the number of other errors."""
    models = [loaded.compiled.models[node] for node in nodes if node in loaded.compiled.models]
    errors = [error for error in attempt.errors if any(is_about(loaded.compiled, error, model) for model in models)]
    if errors:
        raise FindingsError(errors)
    if attempt.errors:
        notify(unselected_errors_line(len(attempt.errors)))
