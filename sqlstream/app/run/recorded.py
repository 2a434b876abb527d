"""The shell of `run` and `build`: signals, records of the run, its page and its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from sqlstream.app.last_command import run_arguments
from sqlstream.app.loading.load import Invocation, LoadAttempt, try_load
from sqlstream.app.observe.record import RunRecorder
from sqlstream.app.observe.stored_journal import StoredJournal
from sqlstream.app.request import RunRequest
from sqlstream.app.session.signals import StopSignals, stop_signals
from sqlstream.app.session.start_driver import SUBMITTED
from sqlstream.app.systems import require_spark_system
from sqlstream.app.ui.run_page import HistoryKeeper, PageOfRun
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.files.files import find_project_root
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.state.runs.events import AlertChanged, QueryNotRun, QueryResult, RunEvent, Status

BAD = (Outcome.FAILED, Outcome.BROKEN)
"""The outcomes of unit tests that fail a command."""


@dataclass(frozen=True)
class RecordedRun:
    """A run that is being recorded: its request, the compiled project, where its events go, and its stop signals.

    Call what is in `begin` once nothing is compiled any more.
    """

    request: RunRequest
    attempt: LoadAttempt
    record: RunRecorder
    signals: StopSignals
    begin: tuple[Callable[[], None], ...]


def record_run(
    request: RunRequest, which: str, notify: Callable[[RunEvent], None], run: Callable[[RecordedRun], RunOutcome]
) -> RunOutcome:
    """Returns the outcome of `run`, for the command `which`. Records the run and passes all its events to `notify`.

    Ctrl-C, SIGTERM and SIGHUP stop each query after its running batch, or end the run before any query starts. Always
    writes run_results.json, so that nobody mistakes the results of an earlier run for those of this one.
    Raises: FindingsError, UsageError.
    """
    require_spark_system(which)
    invocation, root = Invocation(), find_project_root(request.project.folder)
    record = RunRecorder(root, invocation, request.project.env, notify, run_arguments(request, which))
    if SUBMITTED in request.project.env:
        record.stored = StoredJournal(invocation, record.problem)
    # the page ends before the history that it reads
    with HistoryKeeper(root, record.problem) as history, PageOfRun(request, history) as page:
        record.call_on_rotation(history.wake)
        record.begin(request.project.target)
        with stop_signals() as signals:
            with _recording_failure(record):
                attempt = try_load(request.project, invocation)
                outcome = run(RecordedRun(request, attempt, record, signals, (history.start, page.start)))
            outcome = replace(outcome, warnings=record.warnings)
            record.end(succeeded=outcome.succeeded, findings=outcome.warnings)
            if record.stored is not None:
                record.stored.close()
    return replace(outcome, entries=record.entries, invocation_id=invocation.id)


@contextmanager
def _recording_failure(record: RunRecorder) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        findings = error.findings if isinstance(error, FindingsError) else ()
        with suppress(UsageError):  # the first error matters more than one while recording it
            record.end(succeeded=False, findings=findings)
        if record.stored is not None:
            record.stored.close()
        raise


@dataclass(frozen=True)
class RunOutcome:
    """The results of a run in the order of their start, and the alerts that are open at its end. A build also has the
    results of its unit tests, and the queries that it does not run because they never end. `warnings` are all that were
    recorded, and `entries` are the results as in run_results.json.
    """

    results: tuple[QueryResult, ...] = ()
    tests: tuple[CaseResult, ...] = ()
    not_run: tuple[QueryNotRun, ...] = ()
    warnings: tuple[Finding, ...] = ()
    entries: tuple[Mapping[str, object], ...] = ()
    invocation_id: str = ""
    alerts: tuple[AlertChanged, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Whether no query and no unit test failed. Queries are skipped if another node failed, or after a stop."""
        failed = any(result.status is Status.ERROR for result in self.results)
        return not failed and not any(test.outcome in BAD for test in self.tests)
