"""`sqlstream backfill`: writes history that a stream has left out into its sink, as batches of the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from sqlstream.app.backfill.backfill import Backfilled, BackfilledBatch, BackfillRequest, backfill_arguments
from sqlstream.app.backfill.backfill_batches import HistoryFinder, HistoryWriter, begun_batch
from sqlstream.app.backfill.recomputable import check_without_spark, never_committed, not_recomputable
from sqlstream.app.backfill.recompute import Recomputation
from sqlstream.app.last_command import ShortCommand
from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.loading.selected_queries import is_quarantine
from sqlstream.app.plan.ready import CheckContext, CheckedQuery, check_all
from sqlstream.app.replay.parts import static_names
from sqlstream.app.request import ProjectRequest, RunRequest
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopRequestedError, StopSignals, stop_signals
from sqlstream.app.session.target_storage import storage_location
from sqlstream.app.stored.stored_query import terminal_model
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.jvm.session import FINITE_RUN_JVM
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.query_locks import NoLocks, QueryLocks
from sqlstream.spark.storage.storage import storage_problems
from sqlstream.state.backfills import Backfill, beside, cannot_backfill, in_batches, unfinished
from sqlstream.state.checkpoints import unrestartable
from sqlstream.state.plan import Action
from sqlstream.times import utc_text


def backfill_query(request: BackfillRequest) -> Backfilled:
    """Writes the history of a query that its stream has not read and will not read, each row once, and returns what was
    written. First completes a backfill that was interrupted.

    Raises: FindingsError if the query cannot be backfilled, or runs; UsageError if the model is not terminal.
    """
    loaded = load(request.project)
    model = terminal_model(loaded, request.model)
    check_model(loaded, model)
    existing = check_without_spark(loaded, model, request) if request.replaces else frozenset[str]()
    what = "recomputation" if request.replaces else "backfill"
    does = "recompute rows of" if request.replaces else "backfill"
    purpose = f"{f'plan the {what} of' if request.dry_run else does} {model.name}"
    with (
        nullcontext() if request.dry_run else _recorded(loaded, model, request),
        checked_query(loaded, model, request.project, purpose, writes=not request.dry_run) as found,
    ):
        if request.replaces:
            query, checks, _ = found
            log = query.backfills(checks)
            begun = log.unfinished(query.state.last_commit)
            if begun is not None:
                raise FindingsError([unfinished(model.name, begun, model.file.location)])
            check_stream(query, partial(not_recomputable, model))
            return Recomputation(*found, request, log, existing).run()
        return _Backfilling(*found, request).run()


@contextmanager
def _recorded(loaded: Loaded, model: CompiledModel, request: BackfillRequest) -> Iterator[None]:
    """Records the backfill in run_results.json, where `retry` finds it if it fails or is killed."""
    project = loaded.compiled.project
    command = ShortCommand(project.root, project.target.name, backfill_arguments(request))
    entry = {"unique_id": model.unique_id, "model": model.name, "kind": "backfill"}
    command.write([{**entry, "status": "running"}], succeeded=None)
    try:
        yield
    except BaseException as error:
        findings = error.findings if isinstance(error, FindingsError) else ()
        command.write([{**entry, "status": "error"}], succeeded=False, findings=findings)
        raise
    command.write([{**entry, "status": "success"}], succeeded=True)


@contextmanager
def checked_query(
    loaded: Loaded, model: CompiledModel, project: ProjectRequest, purpose: str, *, writes: bool
) -> Iterator[tuple[CheckedQuery, CheckContext, StopSignals]]:
    """Yields the query, checked as a run checks it, and locked if the command `writes`. `purpose` says why Spark
    starts. Raises: FindingsError.
    """
    secrets = Secrets(project.env)
    with ExitStack() as stack, _interrupts():
        signals = stack.enter_context(stop_signals())
        # the locks are released after Spark stops: until then the query may write
        locks = stack.enter_context((QueryLocks if writes else NoLocks)(secrets, project.notify))
        starting = spark_session(
            loaded,
            secrets,
            signals,
            [model.unique_id],
            notify=project.notify,
            notice=f"Starting Spark to {purpose}",
            purpose=FINITE_RUN_JVM,
        )
        runtime = stack.enter_context(starting)
        checks = CheckContext(loaded, RunRequest(project), runtime, secrets, locks, adds_batches=True)
        (query,) = check_all(checks, [model], signals)
        stack.callback(query.query.release)
        with storage_problems(query.root, storage_location(loaded, model), secrets):
            yield query, checks, signals


@contextmanager
def _interrupts() -> Iterator[None]:
    """Converts a requested stop to KeyboardInterrupt."""
    try:
        yield
    except StopRequestedError as error:
        raise KeyboardInterrupt from error


@dataclass(frozen=True)
class _Backfilling:
    query: CheckedQuery
    checks: CheckContext
    signals: StopSignals
    request: BackfillRequest

    def run(self) -> Backfilled:
        log, last = self.query.backfills(self.checks), self.query.state.last_commit
        begun, model = log.unfinished(last), self.query.query.model
        if begun is not None and begun.release is not None:
            raise FindingsError([unfinished(model.name, begun, model.file.location)])
        if self.query.query.identity.stateful:
            why = "it keeps state, and the state after the present rows cannot take up older ones"
            raise _refused(model, why, beside(model.name))
        check_added_batches(self.query, self.checks, begun, partial(_refused, model))
        writer = HistoryWriter(self.query, self.checks, self.signals, log, last)
        done: list[BackfilledBatch] = []
        if begun is not None and not self.request.dry_run:
            done.append(writer.complete(begun))
        elif self.request.only_complete:
            raise UsageError("give a range with --from and --to, or all history with --full-range")
        finder = HistoryFinder(self.query, self.checks.runtime, self.checks.secrets, writer.log, self.request.times)
        for sources in in_batches({} if self.request.only_complete else finder.find()):
            self.signals.check()
            if self.request.dry_run:
                done.append(BackfilledBatch(last + len(done) + 1, sources))
            else:
                done.append(writer.write(sources, *self._limits))
        return Backfilled(
            model.name, self.query.plan.version, *self._limits, tuple(done), self.request.dry_run, tuple(self._notes())
        )

    @property
    def _limits(self) -> tuple[str | None, str | None]:
        since, until = self.request.since, self.request.until
        return (None if since is None else utc_text(since)), (None if until is None else utc_text(until))

    def _notes(self) -> Iterator[str]:
        query = self.query.query
        compiled, model = query.compiled, query.model
        static = static_names(compiled, model)
        if static:
            yield f"{quoted_list(static)} {'is' if len(static) == 1 else 'are'} read as of now"
        tables = () if is_quarantine(model) else compiled.tables_of(model.unique_id)
        kept = [table for table in tables if table.on_corrupt == "quarantine"]
        for table in kept:
            yield f"corrupt records of {quoted(table.full_name)} are left out; backfill the query of its quarantine too"
        yield from repeated_rows(model)


def repeated_rows(model: CompiledModel) -> Iterator[str]:
    """Yields a note if a sink of the model keeps no record of batches."""
    for output in model.outputs:
        if output.format in ("kafka", "python"):
            name = "Kafka" if output.format == "kafka" else f"the function of sink {quoted(output.sink)}"
            yield f"{name} gets each row at least once: after a failure, some can be there twice"


def check_model(loaded: Loaded, model: CompiledModel) -> None:
    """Checks what is known without Spark. Raises: FindingsError."""
    run, why = f"`sqlstream run --select {model.name}`", unrestartable(loaded.compiled, model)
    if not model.streaming:
        raise _refused(model, "it is a batch model, and each run writes all rows of its inputs", f"run it: {run}")
    if model.config.output_mode == "complete":
        raise _refused(model, "in complete mode, each batch replaces all rows by its own", beside(model.name))
    if why is not None:
        raise _refused(model, f"it starts with a new checkpoint in every run, because {why}", f"run it: {run}")
    if not model.config.trigger.facts.has_micro_batches:
        kind = model.config.trigger.facts.words
        raise _refused(model, f"its trigger is {kind}, and such a query has no batches to add to", beside(model.name))
    keys = model.config.unique_key
    if keys:
        why = f"it replaces rows by their {quoted_list(keys)}, and older rows would replace newer ones"
        raise _refused(model, why, beside(model.name))


def check_stream(query: CheckedQuery, refused: Callable[[str, str], FindingsError]) -> None:
    """Checks that the query continues a stream. Raises: the error that `refused` returns for a reason and a fix."""
    if query.plan.action is not Action.RESUME or query.state.last_commit < 0:
        raise refused(*never_committed(query.query.model.name))


def check_added_batches(
    query: CheckedQuery, checks: CheckContext, begun: Backfill | None, refused: Callable[[str, str], FindingsError]
) -> None:
    """Checks that batches can be added after the last one of the stream: the query is the one that wrote it, and no
    batch of the stream is unfinished. `begun` is a batch that was added and interrupted. Raises: as `check_stream`.
    """
    check_stream(query, refused)
    plan, name = query.plan, query.query.model.name
    run = f"`sqlstream run --available-now --select {name}`"
    if plan.changes:
        why = f"it has changed since its last run: {'; '.join(plan.changes)}"
        fix = f"run the changed query first: {run}"
        if begun is not None:
            command = "backfill" if begun.release is None else "quarantine release"
            fix = (
                f"undo the change, complete batch {begun.batch} with `sqlstream {command} {name}`, and change it again"
            )
        raise refused(why, fix)
    offsets = begun_batch(query, checks)
    if offsets is not None and (begun is None or offsets > begun.batch):
        why = f"its batch {offsets} has begun and is not committed"
        raise refused(why, f"complete it first: {run}")


def _refused(model: CompiledModel, why: str, fix: str) -> FindingsError:
    return FindingsError([cannot_backfill(model.name, why, fix, model.file.location)])
