"""The part of `test` that needs Spark: one session for all cases, several of which run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.request import UnitTestRequest
from sqlstream.app.running.jars import session_connectors
from sqlstream.app.running.session import brief_session, check_java
from sqlstream.app.running.signals import interruptible
from sqlstream.spark.jvm.session import NO_CONNECTORS, SessionConnectors, slow_classes
from sqlstream.spark.secrets import Secrets
from sqlstream.state.results.unit_tests import CaseResult, Outcome
from sqlstream.testing.cases import Case
from sqlstream.testing.harness import Harness
from sqlstream.testing.settings import check_supported, session_settings, state_provider, target_of_tests

CASES_AT_ONCE = 2
"""A batch of a few rows leaves a core idle most of the time. More cases in parallel are not faster."""


def run_cases(
    loaded: Loaded,
    request: UnitTestRequest,
    cases: Sequence[Case],
    notify: Callable[[CaseResult], None],
    started: Callable[[Case], None] = lambda _case: None,
) -> None:
    """Runs `cases`, and calls `started` when one starts, in any thread, and `notify` with each result.

    Raises: FindingsError if Spark cannot start.
    """
    env = request.project.env
    with interruptible() as signals:
        check_java(env, signals)
        with open_harness(loaded, request) as harness:
            signals.install()  # PySpark has installed its own handler
            run_all(harness, request, cases, notify, started)


def run_all(
    harness: Harness,
    request: UnitTestRequest,
    cases: Sequence[Case],
    notify: Callable[[CaseResult], None],
    started: Callable[[Case], None] = lambda _case: None,
) -> None:
    """Runs `cases`, some of them in parallel, and calls `notify` with each result; see `run_cases`.

    With `request.fail_fast`, no case starts after one that does not pass.
    """

    def run(case: Case) -> CaseResult:
        started(case)
        return harness.run(case)

    pool = ThreadPoolExecutor(CASES_AT_ONCE)
    try:
        futures = [pool.submit(run, case) for case in cases]
        _notify_results(futures, request, notify)
    finally:
        pool.shutdown(cancel_futures=True)


def _notify_results(
    futures: Sequence[Future[CaseResult]], request: UnitTestRequest, notify: Callable[[CaseResult], None]
) -> None:
    for future in as_completed(futures):
        result = future.result()
        notify(result)
        if request.fail_fast and result.outcome is not Outcome.PASSED:
            return


def _connectors_of_messages(loaded: Loaded, request: UnitTestRequest, secrets: Secrets) -> SessionConnectors:
    """Returns what the parsers of Avro messages need, which a test can give; tests need no other connectors."""
    tables = loaded.compiled.sources.items()
    avro = [node for node, table in tables if table.messages is not None and table.messages.has_avro]
    return session_connectors(loaded, secrets, request.project.env, lambda _line: None, avro) if avro else NO_CONNECTORS


@contextmanager
def open_harness(loaded: Loaded, request: UnitTestRequest) -> Iterator[Harness]:
    """Yields a harness with its own Spark session and a temporary warehouse. Raises: FindingsError."""
    project = loaded.compiled.project
    target = target_of_tests(project.target)
    compiled = replace(loaded.compiled, project=replace(project, target=target))
    secrets = Secrets(request.project.env)
    connectors = _connectors_of_messages(replace(loaded, compiled=compiled), request, secrets)
    slow = slow_classes(model.sql for model in compiled.models.values())
    with brief_session(replace(loaded, compiled=compiled), secrets, connectors, classes=slow) as runtime:
        check_supported(runtime.session, runtime.version)
        settings, provider = session_settings(target), state_provider(project.target)
        yield Harness(runtime, secrets, settings, provider, request.equivalence, request.explains)
