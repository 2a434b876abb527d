"""The shell of `run` and `build`: signals, records of the run, its page and its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from sqlstream.app.loading.load import Invocation, LoadAttempt, try_load
from sqlstream.app.request import RunRequest
from sqlstream.app.running.record import RunRecorder
from sqlstream.app.running.signals import StopSignals, stop_signals
from sqlstream.app.runs.arguments import run_arguments
from sqlstream.app.runs.outcome import RunOutcome
from sqlstream.app.systems import require_spark_system
from sqlstream.app.ui.history_keeper import HistoryKeeper
from sqlstream.app.ui.of_run import PageOfRun
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.files.files import find_project_root
from sqlstream.state.runs.events import RunEvent


@dataclass(frozen=True)
class RecordedRun:
    """A run that is being recorded: its request, the compiled project, where its events go, and its stop signals.

    Call what is in `begin` once nothing is compiled any more: the compiler forks only without threads.
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
    page = PageOfRun(request)
    record = RunRecorder(root, invocation, request.project.env, notify, run_arguments(request, which))
    with page, HistoryKeeper(root, record.problem) as history:
        record.call_on_rotation(history.wake)
        record.begin(request.project.target)
        with stop_signals() as signals:
            with _recording_failure(record):
                attempt = try_load(request.project, invocation)
                outcome = run(RecordedRun(request, attempt, record, signals, (history.start, page.start)))
            record.end(succeeded=outcome.succeeded, findings=outcome.warnings)
    return replace(outcome, entries=record.entries, invocation_id=invocation.id)


@contextmanager
def _recording_failure(record: RunRecorder) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        findings = error.findings if isinstance(error, FindingsError) else ()
        with suppress(UsageError):  # the first error matters more than one while recording it
            record.end(succeeded=False, findings=findings)
        raise
