"""`sqlstream compile --check`: also has Spark analyze the selected models. Starts no query."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.app.compile.compile import CompileOutput, choose
from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.load import try_load
from sqlstream.app.loading.selected_findings import adding_project_errors, selected_errors, unselected_errors_line
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.session.signals import StopRequestedError, stop_signals
from sqlstream.compiler.spark_findings import unexplained
from sqlstream.errors import Finding, FindingsError


def check_models(request: ProjectRequest, selection: Selection = EVERYTHING) -> tuple[CompileOutput, str]:
    """Returns the compiled models of the selection, and the version of the Spark that accepts them.

    Spark analyzes the selected models and everything upstream, without data. It also checks the queries of terminal
    models. It analyzes models that the rules refuse, too, so that all findings are reported together.

    Raises: FindingsError; KeyboardInterrupt if a stop was requested, because then there is no result.
    """
    attempt = try_load(request)
    loaded = attempt.compiled()
    with adding_project_errors(attempt, selection):
        compiled = choose(loaded, selection)
    errors = selected_errors(attempt, compiled.loaded, compiled.nodes)
    if not errors:
        write_compiled(compiled.loaded, compiled.models)
    version, found = _ask(request, errors, compiled)
    if attempt.errors:
        request.notify(unselected_errors_line(len(attempt.errors)))
    return replace(compiled, findings=(*compiled.findings, *found)), version


def _ask(
    request: ProjectRequest, errors: tuple[Finding, ...], compiled: CompileOutput
) -> tuple[str, tuple[Finding, ...]]:
    """Returns Spark's version, and warnings about servers. Raises: FindingsError, KeyboardInterrupt."""
    from sqlstream.app.compile.check_with_spark import ask_session  # loads pyspark

    findings = (*errors, *compiled.findings)
    with stop_signals() as signals:
        try:
            version, refusals, found = ask_session(
                compiled.loaded, compiled.models, request.env, request.notify, signals
            )
        except FindingsError as error:
            raise FindingsError((*findings, *error.findings)) from error
        except StopRequestedError as error:
            raise KeyboardInterrupt from error
    refused = unexplained(compiled.loaded.compiled, errors, refusals)
    if errors or refused or any(finding.is_error for finding in found):
        raise FindingsError((*findings, *refused, *found))
    return version, found
