"""The part of `test` that needs Spark: one session for all cases, several of which run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.request import UnitTestRequest
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopSignals, interruptible
from sqlstream.spark.jvm.session import slow_classes
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.testing.cases import Case
from sqlstream.testing.harness import Harness
from sqlstream.testing.session_settings import check_supported, session_settings, state_provider, target_of_tests

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
    with interruptible() as signals, open_harness(loaded, request, signals) as harness:
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


@contextmanager
def open_harness(loaded: Loaded, request: UnitTestRequest, signals: StopSignals | None = None) -> Iterator[Harness]:
    """Yields a harness with its own Spark session and a temporary warehouse. Raises: FindingsError."""
    project = loaded.compiled.project
    target = target_of_tests(project.target)
    loaded = replace(loaded, compiled=replace(loaded.compiled, project=replace(project, target=target)))
    secrets = Secrets(request.project.env)
    tables = loaded.compiled.sources.items()  # a test can give Avro messages, and needs no other connectors
    avro = [node for node, table in tables if table.messages is not None and table.messages.has_avro]
    slow = slow_classes(model.sql for model in loaded.compiled.models.values())
    with spark_session(loaded, secrets, signals, avro, classes=slow) as runtime:
        check_supported(runtime.session, runtime.version)
        settings, provider = session_settings(target), state_provider(project.target)
        yield Harness(runtime, secrets, settings, provider, request.equivalence, request.explains)
