"""`sqlstream compile --check`: what Spark says of the selected models too, with nothing started and nothing written."""

from __future__ import annotations

from sqlstream.app.compile import Compiled, choose
from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.load import try_load
from sqlstream.app.loading.other_errors import errors_elsewhere, errors_of_selection, with_errors_of
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.running.signals import StopAskedError, stop_signals
from sqlstream.compiler.refusals import unexplained
from sqlstream.errors import Finding, FindingsError


def check_models(request: ProjectRequest, selection: Selection = EVERYTHING) -> tuple[Compiled, str]:
    """Returns what `compile_models` does, and the version of the Spark that accepts it.

    Spark analyses the selected models, and all that they read, with no data; a terminal model is also checked as the
    query that it becomes.

    Spark is asked about models that the rules refuse as well, so that all findings come together.
    Raises: FindingsError; KeyboardInterrupt when a stop was asked for, since nothing is known then.
    """
    attempted = try_load(request)
    if attempted.loaded is None:
        raise FindingsError(attempted.findings)
    with with_errors_of(attempted, selection):
        compiled = choose(attempted.loaded, selection)
    errors = errors_of_selection(attempted, compiled.loaded, compiled.nodes)
    if not errors:
        write_compiled(compiled.loaded, compiled.models)
    version = _ask(request, errors, compiled)
    if attempted.errors:
        request.notify(errors_elsewhere(len(attempted.errors)))
    return compiled, version


def _ask(request: ProjectRequest, errors: tuple[Finding, ...], compiled: Compiled) -> str:
    """The version of the Spark that has been asked. Raises: FindingsError, KeyboardInterrupt."""
    from sqlstream.app.running.check import ask_session  # pyspark is loaded here and not before

    findings = (*errors, *compiled.findings)
    with stop_signals() as signals:
        try:
            version, refusals = ask_session(compiled.loaded, compiled.models, request.env, request.notify, signals)
        except FindingsError as error:
            raise FindingsError((*findings, *error.findings)) from error
        except StopAskedError as error:
            raise KeyboardInterrupt from error
    refused = unexplained(compiled.loaded.compiled, errors, refusals)
    if errors or refused:
        raise FindingsError((*findings, *refused))
    return version
