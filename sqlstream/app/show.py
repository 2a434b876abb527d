"""`sqlstream show`: the first rows of models, seeds and sources, or of a query on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlstream.app.loading.load import Loaded, LoadOutcome, try_load
from sqlstream.app.loading.other_errors import errors_elsewhere
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection, silent
from sqlstream.app.running.live_tables import live_rows
from sqlstream.app.running.signals import StopAskedError, stop_signals
from sqlstream.compiler.node_ids import model_id
from sqlstream.compiler.refusals import is_about
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.files.files import find_project_root
from sqlstream.project.values import ModelFile
from sqlstream.state.results.rows import ShownRows

INLINE = "inline"
"""What stands for the file of a query on the command line: `inline:1:8`."""

SHOWN_ROWS = 5
"""Rows shown of each node unless another number is asked for: dbt's."""


@dataclass(frozen=True)
class ShowRequest:
    """What to show: the nodes that `selection` takes, or `inline`, a query as a model's file holds it."""

    project: ProjectRequest
    selection: Selection = EVERYTHING
    inline: str | None = None
    limit: int = SHOWN_ROWS


@dataclass(frozen=True)
class Shown:
    """The rows of each node, parents first, and the warnings about the selection."""

    nodes: tuple[ShownRows, ...]
    warnings: tuple[Finding, ...]


@dataclass(frozen=True)
class Chosen:
    """A compiled project and the ids of the nodes to show, with the warnings about the selection."""

    loaded: Loaded
    nodes: tuple[str, ...]
    warnings: tuple[Finding, ...]


def show_rows(request: ShowRequest) -> Shown:
    """Returns the first rows of what is selected: of the table that a run fills in memory where there is one, and else
    of the model read as a batch over its sources. Nothing is started or written.

    Raises: FindingsError; UsageError; KeyboardInterrupt.
    """
    chosen, notify = choose(request), request.project.notify
    from sqlstream.app.running.show import open_previews  # pyspark is loaded here and not before

    with stop_signals() as signals, signals.passed_to(interrupt):
        try:
            live = _live(chosen, request.limit, notify)
            others = tuple(node for node in chosen.nodes if node not in live)
            if others:
                with open_previews(request.project.env, notify, signals) as previews:
                    live |= {shown.unique_id: shown for shown in previews.show(chosen.loaded, others, request.limit)}
            return Shown(tuple(live[node] for node in chosen.nodes), chosen.warnings)
        except StopAskedError as error:
            raise KeyboardInterrupt from error


def _live(chosen: Chosen, limit: int, notify: Callable[[str], None]) -> dict[str, ShownRows]:
    """The nodes that a run keeps in memory right now, by their ids."""
    compiled = chosen.loaded.compiled
    models = (compiled.models[node] for node in chosen.nodes if node in compiled.models)
    shown = (live_rows(compiled, model, limit, notify) for model in models)
    return {each.unique_id: each for each in shown if each is not None}


def interrupt() -> None:
    """Ends what runs at once: nothing is lost by that. Raises: KeyboardInterrupt."""
    raise KeyboardInterrupt


def choose(request: ShowRequest) -> Chosen:
    """Returns the project compiled, and what is to be shown of it.

    Raises: FindingsError where it cannot be shown: for what is wrong elsewhere in the project `compile` is there.
    """
    inline = None if request.inline is None else _inline_model(request)
    attempted = try_load(request.project, inline=inline)
    if attempted.loaded is None:
        raise FindingsError(attempted.findings)
    compiled = attempted.loaded.compiled
    if inline is None:
        nodes, warnings = select(compiled, request.selection)
    else:
        nodes, warnings = (model_id(compiled.project.name, inline.name),), ()
        if nodes[0] not in compiled.models:
            raise UsageError("--inline disables itself: remove `enabled=false` from its config()")
    _refuse(attempted, attempted.loaded, nodes, request.project.notify if inline is None else silent)
    return Chosen(attempted.loaded, nodes, warnings)


def _inline_model(request: ShowRequest) -> ModelFile:
    """The query as a model, under a name that no file has: Jinja's `this` and messages show it."""
    root = find_project_root(request.project.folder)
    taken = {path.stem.casefold() for folder in ("models", "seeds") for path in (root / folder).rglob("*.*")}
    names = (INLINE, *(f"{INLINE}_{number}" for number in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    return ModelFile(name, INLINE, request.inline or "", (), "", (), ())


def _refuse(attempted: LoadOutcome, loaded: Loaded, nodes: Sequence[str], notify: Callable[[str], None]) -> None:
    """Tells how many errors of the rules are not in what is to be shown. Raises: FindingsError for those that are."""
    models = [loaded.compiled.models[node] for node in nodes if node in loaded.compiled.models]
    errors = [error for error in attempted.errors if any(is_about(loaded.compiled, error, model) for model in models)]
    if errors:
        raise FindingsError(errors)
    if attempted.errors:
        notify(errors_elsewhere(len(attempted.errors)))
