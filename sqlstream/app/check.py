"""`sqlstream compile --check`: what Spark says of the selected models too, with nothing started and nothing written."""

from __future__ import annotations

from collections.abc import Callable

from sqlstream.app.artifacts import write_compiled
from sqlstream.app.compile import Compiled, choose
from sqlstream.app.loading import Attempt, Loaded, attempt
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.signals import StopAskedError, stop_signals
from sqlstream.compiler.refusals import unexplained
from sqlstream.errors import FindingsError


def check_models(
    request: ProjectRequest, selection: Selection = EVERYTHING, tell: Callable[[str], None] = lambda _line: None
) -> tuple[Compiled, str]:
    """Returns what `compile_models` does, and the version of the Spark that accepts it.

    Spark analyses the selected models, and all that they read, with no data; a terminal model is also checked as the
    query that it becomes. `tell` hears what takes its time.

    Spark is asked about models that the rules refuse as well, so that all findings come together.
    Raises: FindingsError; KeyboardInterrupt when a stop was asked for, since nothing is known then.
    """
    attempted = attempt(request)
    if attempted.loaded is None:
        raise FindingsError(attempted.findings)
    compiled = _choose(attempted, attempted.loaded, selection)
    if not attempted.errors:
        write_compiled(compiled.loaded, compiled.models)
    return compiled, _ask(request, attempted, compiled, tell)


def _choose(attempted: Attempt, loaded: Loaded, selection: Selection) -> Compiled:
    try:
        return choose(loaded, selection)
    except FindingsError as error:
        raise FindingsError((*attempted.findings, *error.findings)) from error


def _ask(request: ProjectRequest, attempted: Attempt, compiled: Compiled, tell: Callable[[str], None]) -> str:
    """The version of the Spark that has been asked. Raises: FindingsError, KeyboardInterrupt."""
    from sqlstream.app.session_check import ask_session  # pyspark is loaded here and not before

    findings = (*attempted.errors, *compiled.findings)
    with stop_signals() as signals:
        try:
            version, refusals = ask_session(compiled.loaded, compiled.models, request.env, tell, signals)
        except FindingsError as error:
            raise FindingsError((*findings, *error.findings)) from error
        except StopAskedError as error:
            raise KeyboardInterrupt from error
    refused = unexplained(compiled.loaded.compiled, attempted.errors, refusals)
    if attempted.errors or refused:
        raise FindingsError((*findings, *refused))
    return version
