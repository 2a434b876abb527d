"""Records a run, during it and at its end, in target/run_results.json and logs/events.jsonl."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import RunRecord, write_run_results
from sqlstream.app.loading.load import Invocation
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.observe.observers import NO_OBSERVERS, Observers
from sqlstream.app.observe.stored_journal import StoredJournal
from sqlstream.compiler.emission import Emission
from sqlstream.errors import Finding, UsageError
from sqlstream.history.lines import LAG
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.report.run_json import event_fields, event_name, to_line
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.processes import process_start
from sqlstream.state.runs.events import (
    AlertChanged,
    Notice,
    QueriesSelected,
    QueryResult,
    QuerySilent,
    RunEvent,
    Status,
    TableShown,
    UnitTestEnded,
    UnitTestStarted,
    WarningEmitted,
)
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.silence import QUIET_BATCHES, Cause, why_ended_silent, why_silent
from sqlstream.state.runs.tracked_run import TrackedRun, end_unfinished, follow
from sqlstream.state.sources.lag import MeasuredLag, add_lags

RESULTS_SECONDS = 1.0
"""How often batches update run_results.json. The journal has every batch."""

Explain = Callable[[str], Emission | None]
"""Returns when the query of a model emits rows."""

EVENTS = "events.jsonl"
MAX_BYTES = 10_000_000
"""The size at which a file is rotated."""
GENERATIONS = 4
"""The number of older files to keep, `events.jsonl.1` being the newest: 50 MB in total."""


class RunRecorder:
    """Records every event of a run and passes it on. If a file cannot be written, the run continues with one notice.

    Several threads can report events. `stored` also gets the lines of the journal.
    """

    def __init__(
        self,
        root: Path,
        invocation: Invocation,
        env: Mapping[str, str],
        notify: Callable[[RunEvent], None],
        arguments: Mapping[str, Any],
        stored: StoredJournal | None = None,
    ) -> None:
        self._arguments = arguments
        self.stored = stored
        self._folder = root / ARTIFACTS_FOLDER
        self._journal = Journal(root / LOGS_FOLDER)
        self._invocation = invocation
        self._redact = Secrets(env).redact
        self._notify = notify
        self._explain: Explain = lambda _model: None
        self._began = self._written = time.monotonic()
        self._process = {"pid": os.getpid(), "process_start": process_start(os.getpid())}
        self._reported: set[str] = set()
        self._findings: list[Finding] = []
        self._run = TrackedRun()
        self._target: str | None = None
        self._observers: Observers = NO_OBSERVERS
        self._lock = threading.RLock()  # a signal handler may report an event during another one

    def begin(self, target: str | None) -> None:
        """Records the start of the run. `target` is None for the project's default target."""
        self._target = target
        self._append("run_began", {**self._process, "target": target})
        with suppress(UsageError):  # the compiler, which runs next, reports it
            self._write_results(None)

    def load(self, target: str, explain: Explain) -> None:
        """Records the target, after the project has compiled."""
        self._target, self._explain = target, cache(explain)
        self._append("run_loaded", {"target": target})

    def expect(self, queries: QueriesSelected) -> None:
        """Records queries that a build starts after its unit tests, so that `retry` knows them if it ends before."""
        with self._lock:
            self._run = follow(self._run, queries, _now())

    def pass_to(self, observers: Observers) -> None:
        """Passes all events from now on to `observers`, too."""
        self._observers = observers

    def call_on_rotation(self, call: Callable[[], None]) -> None:
        """Calls `call` whenever the journal is rotated."""
        self._journal.on_rotate = call

    def problem(self, text: str) -> None:
        """Reports a sentence about the run, without secrets."""
        self(Notice(self._redact(text)))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The warnings so far."""
        with self._lock:
            return tuple(self._findings)

    @property
    def open_alerts(self) -> tuple[AlertChanged, ...]:
        """The alerts that are open now."""
        with self._lock:
            return tuple(alert for query in self._run.queries.values() for alert in query.open_alerts)

    def end(self, *, succeeded: bool, findings: tuple[Finding, ...]) -> None:
        """Records the end of the run. Raises: UsageError if run_results.json cannot be written."""
        self._findings = list(findings)
        self._run = end_unfinished(self._run)
        self._append("run_ended", {"succeeded": succeeded})
        self._write_results(succeeded)

    @property
    def entries(self) -> tuple[Mapping[str, object], ...]:
        """The entries of run_results.json."""
        return self._run.entries(_now())

    def __call__(self, event: RunEvent) -> None:
        """Records `event` and passes it on, followed by the reason if the query emits no rows."""
        with self._lock:
            self._record(event)

    def _record(self, event: RunEvent) -> None:
        self._follow(event)
        if isinstance(event, WarningEmitted):
            self._findings.append(event.finding)
        silent = self._silence(event) if isinstance(event, BatchProgress | QueryResult) else None
        if silent is not None:
            self._follow(silent)
        self._note(event)
        self._update_results(event)
        self._notify(event)
        if silent is not None:
            if silent.is_new:
                self._note(silent)
            self._notify(silent)

    def _follow(self, event: RunEvent) -> None:
        now = _now()
        self._run = follow(self._run, event, now)
        self._observers.put(event, self._run, now)

    def keep_lag(self, model: str, lag: MeasuredLag) -> bool:
        """Records what a query has not read yet after a batch, only in the journal: it is for the history. Returns
        False if the batch itself is not recorded yet: a checkpoint has it earlier.
        """
        with self._lock:
            query = self._run.queries.get(model)
            last = query.figures.last if query is not None else None
            if last is None or lag.batch is None or last.batch_id < lag.batch:
                return False
            self._append(LAG, {"model": model, "batch_id": lag.batch, "lag": add_lags(lag.sources.values())})
            return True

    def _silence(self, event: BatchProgress | QueryResult) -> QuerySilent | None:
        query = self._run.queries.get(event.model)
        if query is None or query.status in (Status.ERROR, Status.SKIPPED):
            return None
        quiet, last, ended = query.figures.quiet, query.figures.last, isinstance(event, QueryResult)
        asks = quiet.batches >= (1 if ended else QUIET_BATCHES) and last is not None and last.state is not None
        emission = self._explain(event.model) if asks else None
        silence = why_ended_silent(query.figures, emission) if ended else why_silent(query.figures, emission)
        if silence is None or query.query.kind != "stream":
            return None
        if query.query.is_quarantine and silence.cause is Cause.FILTERED:
            return None  # no record was corrupt
        is_new = query.silence is None or query.silence.cause is not silence.cause
        return QuerySilent(event.model, silence, is_new or query.status is Status.SUCCESS, ended)

    def _note(self, event: RunEvent) -> None:
        if isinstance(event, TableShown):
            return  # logs contain no rows of data
        fields = event_fields(event)
        is_test = isinstance(event, UnitTestStarted | UnitTestEnded)
        fields.pop("differences", None)  # rows of a unit test
        query = None if is_test else self._run.queries.get(fields.get("model", ""))
        if query is not None:
            entry = query.as_json(_now())
            if isinstance(event, BatchProgress):
                del entry["progress"]  # it repeats the line
            fields = {**fields, "query": entry}
        self._append(event_name(event), fields)

    def _append(self, name: str, fields: Mapping[str, Any]) -> None:
        line = self._redact(to_line(name, {"invocation_id": self._invocation.id, **fields}))
        self._journal.append(line)
        if self.stored is not None:
            self.stored.add(line)
        if self._journal.problem is not None:
            self._report("logs/events.jsonl", self._journal.problem)

    def _update_results(self, event: RunEvent) -> None:
        is_frequent = isinstance(event, BatchProgress | Notice | TableShown)
        if is_frequent and time.monotonic() - self._written < RESULTS_SECONDS:
            return
        try:
            self._write_results(None)
        except UsageError as error:
            self._report("target/run_results.json", str(error))

    def _write_results(self, succeeded: bool | None) -> None:
        self._written = time.monotonic()
        now = _now()
        record = RunRecord(
            invocation=self._invocation,
            target=self._target,
            succeeded=succeeded,
            findings=tuple(self._findings),
            results=self._run.entries(now),
            seconds=self._written - self._began,
            process=self._process,
            arguments=self._arguments,
        )
        write_run_results(self._folder, record)

    def _report(self, name: str, problem: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            self._notify(Notice(f"{name} cannot be written ({problem}); the run continues without it"))


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """Appends lines to the newest file. Several processes may append at once, because each line is a single write.

    A file that cannot be written never ends a run. `problem` says why the last line was not written, None if it was.
    `on_rotate` is called after this process has renamed the files.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._path = folder / EVENTS
        self._max_bytes = max_bytes
        self._has_partial_line = False
        self.problem: str | None = None
        self.on_rotate: Callable[[], None] = lambda: None

    def append(self, line: str) -> None:
        """Writes `line`, which has no newline."""
        content = line.encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(b"\n" + content if self._has_partial_line else content)
        except OSError as error:
            self.problem = (error.strerror or str(error)).lower()
        else:
            self.problem = None

    def _write(self, content: bytes) -> None:
        with _appended(self._path) as file:
            status = os.fstat(file)
            # an empty file takes a line of any length
            is_full = status.st_size > 0 and status.st_size + len(content) > self._max_bytes
            # while another process renames the files, the full one takes this line, too
            if not is_full or not self._rotate(status.st_ino):
                self._write_once(file, content)
                return
        with _appended(self._path) as file:
            self._write_once(file, content)

    def _write_once(self, file: int, content: bytes) -> None:
        """Writes `content` in one call. If the disk is full and only a part fits, the next entry starts a new line."""
        written = os.write(file, content)
        self._has_partial_line = written < len(content)
        if self._has_partial_line:
            raise OSError(None, "the disk is full")

    def _rotate(self, inode: int) -> bool:
        """Renames all files if `inode` is still the newest one. Returns False if another process is renaming them."""
        from filelock import lock_descriptor  # slow to import and rarely needed

        lock = os.open(self._folder / f".{EVENTS}.lock", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        try:
            if not lock_descriptor(lock, blocking=False):
                return False
            if self._path.stat().st_ino == inode:
                _rename_files(self._folder)
                self.on_rotate()
        except FileNotFoundError:
            return False
        finally:
            os.close(lock)
        return True


def _rename_files(folder: Path) -> None:
    # the oldest file is replaced first, and then each of the others takes the name before its own
    for older, newer in pairwise(journal_files(folder)):
        with suppress(FileNotFoundError):
            newer.replace(older)


def journal_files(folder: Path) -> tuple[Path, ...]:
    """Returns the paths of all possible files, the oldest first."""
    return (*(folder / f"{EVENTS}.{number}" for number in range(GENERATIONS, 0, -1)), folder / EVENTS)


@contextmanager
def _appended(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)
