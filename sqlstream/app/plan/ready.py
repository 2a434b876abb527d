"""Has Spark analyze queries, checks them, and plans them on their checkpoints: for a run, and for `plan --check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.plan.breaks import stored_differences, with_breaks
from sqlstream.app.plan.compiled_identity import ParallelQueries
from sqlstream.app.plan.details import describe, removed_queries, with_previous_names
from sqlstream.app.plan.output_checks import OutputCheck
from sqlstream.app.plan.read_so_far import read_so_far
from sqlstream.app.request import EVERYTHING, PlanRequest, RunRequest
from sqlstream.app.session.session import spark_for_check
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base, storage_location, versioned_output
from sqlstream.app.stored.file_types import type_findings
from sqlstream.app.stored.local_sources import header_findings
from sqlstream.app.stored.stored_outputs import StoredOutputs, WrittenOutput
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.outputs import stages, stored_inputs
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.queries.failures import cannot_connect, database_finding
from sqlstream.spark.queries.prepare import PreparedQuery, prepare_query
from sqlstream.spark.queries.start import StartOrder
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import checkpoint_damage
from sqlstream.spark.storage.query_locks import NoLocks, QueryLocks, query_in_use
from sqlstream.spark.storage.state_files import FIRST_PARTITION, RETAINED, many_files
from sqlstream.spark.storage.storage import Storage, storage_for, storage_problems
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.late_rows import late_target
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.spark.writing.quarantine import quarantine_target
from sqlstream.spark.writing.writers import database_writer
from sqlstream.state.backfills import (
    BackfillLog,
    UnreadableBackfillsError,
    backfills_path,
    check_backfilled,
    read_backfills,
    unfinished,
    unreadable_backfills,
)
from sqlstream.state.checkpoints import CheckpointState, read_checkpoint, read_versions_file, unrestartable
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import checkpoint_path, query_root, version_root
from sqlstream.state.lost_outputs import CommittedBatches, committed_batches, find_query_id
from sqlstream.state.plan import Action, QueryPlan, StartOptions, plan_model
from sqlstream.state.query_versions import has_begun_since
from sqlstream.state.refusals import StartRefusal, refusal_findings
from sqlstream.state.repartitions import migrated
from sqlstream.state.small_files import files_of_sink
from sqlstream.state.verdicts import ProjectPlan, QueryVerdict, Verdict

POLL_SECONDS = 0.1
"""How often to check for a stop request."""

CHECKED_AT_A_TIME = 8
"""The number of queries to check in parallel. Most of the time they wait for storage."""


@dataclass(frozen=True)
class CheckedQuery:
    """A checked query with the plan for its checkpoint. Versions of the checkpoint are in `root` in `storage`, which
    does not exist yet if the query is new. `locked` is the version that this process has locked (0: none). `after` are
    the models of this run whose stored outputs the query reads. `is_parallel`: it runs in parallel with the current
    version.
    `is_unchecked`: its database did not answer, so its outputs are checked when it starts. `warnings` are about what it
    has written so far.
    """

    query: PreparedQuery
    plan: QueryPlan
    root: str
    storage: Storage
    state: CheckpointState
    locked: int
    after: tuple[str, ...] = ()
    is_parallel: bool = False
    is_unchecked: bool = False
    warnings: tuple[Finding, ...] = ()

    def order(self, checks: CheckContext) -> StartOrder:
        """Returns the order to start the query, which is locked."""
        return StartOrder(
            self.query,
            checks.locks.of(self.lock_root),
            self.query.model.config.trigger,
            checkpoint_path(self.root, self.plan.version) if self.query.model.streaming else None,
            self.output(checks),
            self.plan.action is Action.FRESH_EACH_RUN,
            self.after,
            self.outputs(checks)[1:],
            self.is_unchecked and self.plan.action is not Action.FRESH_EACH_RUN,
            self.quarantine(checks),
            late=self.late_rows(checks),
            server=checks.runtime.connect.server if checks.runtime.connect is not None else None,
        )

    def quarantine(self, checks: CheckContext) -> str | None:
        """Returns the path, URI or table of the quarantine, None without one. It has the rows of all versions."""
        return self._beside(self.query.compiled.quarantines, checks)

    def late_rows(self, checks: CheckContext) -> str | None:
        """Returns the path, URI or table of the late rows, None without them. It has those of all versions."""
        return self._beside(self.query.compiled.late_rows, checks)

    def quarantine_target(self, checks: CheckContext) -> SinkTarget | None:
        """Returns the target of the quarantine, None without one."""
        found = self.query
        if found.marked is None:
            return None
        return quarantine_target(
            found.compiled.quarantines[found.model.unique_id], self.quarantine(checks), found.marked, checks.secrets
        )

    def late_target(self, checks: CheckContext) -> SinkTarget | None:
        """Returns the target of the late rows, None without them."""
        found = self.query
        if found.before_state is None:
            return None
        return late_target(found.compiled, found.model, self.late_rows(checks), found.before_state, checks.secrets)

    def _beside(self, rows: Mapping[str, CompiledModel], checks: CheckContext) -> str | None:
        found = rows.get(self.query.model.unique_id)
        return versioned_output(checks.loaded, found.outputs[0], 1, ()) if found is not None else None

    def prepared_over(self, compiled: CompiledProject, checks: CheckContext) -> CheckedQuery:
        """Returns the query over the stored outputs of `compiled`. Raises: FindingsError."""
        resumes = self.state.is_used and self.plan.action is Action.RESUME
        ledger = self.state.ledger if resumes else None
        self.query.release()
        query = prepare_query(compiled, self.query.model, checks.runtime, checks.secrets, ledger)
        return replace(self, query=query)

    def record_output(self, checks: CheckContext) -> None:
        """Records what the query will write, for the queries that read it and are checked after it."""
        path = self.output(checks)
        if path is not None and not self.is_parallel:
            checks.written[self.query.model.name] = WrittenOutput(path, self.query.identity.columns)

    def output(self, checks: CheckContext) -> str | None:
        """Returns the path, URI or table that the query writes to, None for sinks without one."""
        return self.outputs(checks)[0]

    def outputs(self, checks: CheckContext) -> tuple[str | None, ...]:
        """Returns the path, URI or table of each sink of the query, None for sinks without one."""
        outputs = self.query.model.outputs
        published = self.state.published
        return tuple(versioned_output(checks.loaded, output, self.plan.version, published) for output in outputs)

    def lock(self, checks: CheckContext) -> None:
        """Locks a new version for this process. An existing one is locked already. New ones are locked this late,
        because a run that is refused writes nothing, not even a lock.

        Raises: FindingsError if another process has locked the version, or has created it since the check.
        """
        if self.plan.version == self.locked:
            model = self.query.model
            checks.locks.confirm(self.lock_root, model.name, model.file.location)  # the checks may have taken minutes
            return
        self.lock_version(checks)
        if read_checkpoint(checks.storage_of, self.root, parallel=self.is_parallel) != self.state:
            raise FindingsError([_started_meanwhile(self.query.model)])

    def lock_version(self, checks: CheckContext) -> None:
        """Locks the planned version for this process. Raises: FindingsError if another process has locked it."""
        model = self.query.model
        checks.locks.add(self.storage, self.lock_root, model.name, model.file.location)

    @property
    def lock_root(self) -> str:
        """What is locked for the planned version."""
        return version_root(self.root, self.plan.version)

    def check_files(self, checks: CheckContext) -> None:
        """Checks the outputs and the checkpoint as the plan needs them.

        Raises: FindingsError; DatabaseError if a database does not answer, after all other checks.
        """
        unanswered = None
        resumes, is_new = self.plan.action is Action.RESUME, self.plan.action not in (Action.RESUME, Action.WRITE)
        committed = self.committed(checks) if resumes else None
        accepts_rows = self.query.model.name in checks.request.accept_state_change
        for check in self._output_checks(checks):
            try:
                check.check_table(committed)
                if is_new:
                    check.check_unused_table()
            except DatabaseError as error:
                unanswered = self._unanswered(error, check.output)
            if is_new:
                check.check_unused_output(checks.storage_of, accepts_rows=accepts_rows)
        for target in (self.quarantine_target(checks), self.late_target(checks)):
            writer = None if target is None else database_writer(target)
            if target is not None and writer is not None:
                try:
                    writer.check((), None)
                except DatabaseError as error:
                    unanswered = self._unanswered(error, target.output)
        if resumes:
            self.check_whole(checks)
        if unanswered is not None:
            raise unanswered

    def _unanswered(self, error: DatabaseError, output: Output) -> DatabaseError:
        """Returns the error of a database that may answer later. Raises: FindingsError for another one."""
        if cannot_connect(error):
            raise FindingsError([database_finding(self.query, error, output)]) from error
        return error

    def check_again(self, checks: CheckContext) -> None:
        """Checks the outputs and the checkpoint of a query that failed, before it restarts: something may have damaged
        them. Raises: FindingsError, DatabaseError.
        """
        committed = self.committed(checks)
        for check in self._output_checks(checks):
            check.check_table(committed)
            if self.is_unchecked and committed is None:
                query_id = find_query_id(self.storage, checkpoint_path(self.root, self.plan.version))
                check.check_unused_table(query_id or "")
        self.check_whole(checks)

    def committed(self, checks: CheckContext) -> CommittedBatches | None:
        """Returns the batches that the planned version has committed so far. Raises: FindingsError."""
        with storage_problems(self.root, storage_location(checks.loaded, self.query.model), checks.secrets):
            return committed_batches(self.storage, self.root, self.plan.version)

    def _output_checks(self, checks: CheckContext) -> list[OutputCheck]:
        resumed = self.state.ledger.identity if self.state.ledger and self.plan.action is Action.RESUME else None
        old = {identity.sink_path: identity for identity in resumed.by_sink} if resumed else {}
        identities = self.query.identity.by_sink
        sinks = zip(self.query.model.outputs, self.outputs(checks), identities, strict=True)
        return [
            OutputCheck(self.query, output, path, identity, old.get(identity.sink_path), checks.secrets)
            for output, path, identity in sinks
        ]

    def logged_outputs(self, checks: CheckContext) -> tuple[str, ...]:
        """Returns the folders of the file sinks that log their batches."""
        pairs = zip(self.query.identity.by_sink, self.outputs(checks), strict=True)
        return tuple(path for identity, path in pairs if identity.adds_files and path is not None)

    def written_files(self, checks: CheckContext) -> tuple[Finding, ...]:
        """Returns warnings about the files that a query which resumes has added to its sinks and its checkpoint.

        Raises: FindingsError.
        """
        if self.plan.action is not Action.RESUME:
            return ()
        found: list[Finding] = []
        model = self.query.model
        sinks = zip(model.outputs, self.query.identity.by_sink, self.outputs(checks), strict=True)
        for output, identity, path in sinks:
            if identity.adds_files and path is not None:
                with storage_problems(self.root, storage_location(checks.loaded, model), checks.secrets):
                    files = files_of_sink(output.sink, output.format, *checks.storage_of(path))
                found += files.findings(model.name, output.location)
        many = self._many_state_files(checks) if self.query.identity.stateful else None
        return tuple(found if many is None else [*found, many])

    def _many_state_files(self, checks: CheckContext) -> Finding | None:
        with storage_problems(self.root, storage_location(checks.loaded, self.query.model), checks.secrets):
            files = self.storage.files(f"{checkpoint_path(self.root, self.plan.version)}/{FIRST_PARTITION}")
        names = [file.name.rpartition("/")[2] for file in files]
        return many_files(self.query.model, names, checks.loaded.compiled.project.target.spark.get(RETAINED))

    def check_whole(self, checks: CheckContext) -> None:
        """Checks that the query can resume on its checkpoint without loss. Raises: FindingsError."""
        model, session = self.query.model, checks.runtime.session
        outputs = self.logged_outputs(checks) or (None,)
        checkpoint = checkpoint_path(self.root, self.plan.version)
        with storage_problems(self.root, storage_location(checks.loaded, model), checks.secrets):
            found = [damage for output in outputs for damage in checkpoint_damage(session, checkpoint, output)]
        if found:
            findings = [damage_finding(model.name, damage, model.file.location) for damage in found]
            raise FindingsError(list(dict.fromkeys(findings)))
        committed = self.committed(checks)
        if committed is not None:
            for check in self._output_checks(checks):
                check.check_files(committed, checks.storage_of)
        # the command that adds batches completes one that was interrupted
        if checks.adds_batches:
            return
        log = self.backfills(checks)
        begun = log.unfinished(self.state.last_commit)
        if begun is not None:
            raise FindingsError([unfinished(model.name, begun, model.file.location)])
        with storage_problems(self.root, storage_location(checks.loaded, model), checks.secrets):
            at = (self.root, self.plan.version)
            check_backfilled(self.query.compiled, model, at, log, checks.storage_of)

    def backfills(self, checks: CheckContext) -> BackfillLog:
        """Returns the backfills of the planned version. Raises: FindingsError."""
        model = self.query.model
        with storage_problems(self.root, storage_location(checks.loaded, model), checks.secrets):
            storage, root = checks.storage_of(self.root)
            path = backfills_path(root, self.plan.version)
            try:
                return read_backfills(storage.read_text(path))
            except UnreadableBackfillsError as error:
                problem = unreadable_backfills(model.name, path, str(error), model.file.location)
                raise FindingsError([problem]) from error


def _started_meanwhile(model: CompiledModel) -> Finding:
    return query_in_use(model.name, "another run that has started in the meantime", model.file.location)


@dataclass(frozen=True)
class CheckContext:
    """The inputs for checking queries. `locks` keeps other processes from the checked queries until it ends.
    With `adds_batches`, a query may have a backfill or a release that was interrupted. `written` are the outputs of the
    queries that have been checked, by the names of their models.
    """

    loaded: Loaded
    request: RunRequest
    runtime: SparkRuntime
    secrets: Secrets
    locks: QueryLocks
    adds_batches: bool = False
    written: dict[str, WrittenOutput] = field(default_factory=dict)

    @property
    def outputs(self) -> StoredOutputs:
        """The stored outputs that queries can read."""
        return StoredOutputs(self.loaded, self.runtime.session, self.secrets, self.written)

    @property
    def parallel(self) -> ParallelQueries:
        """The queries whose new version runs in parallel with the current one."""
        request, compiled = self.request, self.loaded.compiled
        storage = storage_base(self.loaded)
        return ParallelQueries(compiled, request.parallel, self.storage_of, storage, request.full_refresh)

    def wanted_root(self, model: CompiledModel) -> str:
        """Returns the folder or URI with the versions of a model's query, as the project names it."""
        return query_root(storage_base(self.loaded), model.query_id, model.config.checkpoint)

    def storage_of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage that contains `path`, and `path` in the form that this storage uses."""
        return storage_for(path, self.runtime.session)


_Checked = CheckedQuery | StartRefusal | tuple[Finding, ...]
"""A checked query, or why it cannot start."""


def check_all(checks: CheckContext, models: Sequence[CompiledModel], signals: StopSignals) -> list[CheckedQuery]:
    """Returns every query, analyzed, checked and planned. Raises: FindingsError with the findings of all queries.

    A query that reads the stored output of another one is checked after it, because it reads the version that the other
    query will write.
    """
    ready: dict[str, CheckedQuery] = {}
    for stage in stages(checks.loaded.compiled, models):
        for item in _check_stage(checks, stage, signals):
            ready[item.query.model.unique_id] = item
            item.record_output(checks)
    return [ready[model.unique_id] for model in models]


def _check_stage(checks: CheckContext, models: Sequence[CompiledModel], signals: StopSignals) -> list[CheckedQuery]:
    """Returns the queries of one stage. Raises: FindingsError.

    Checks several queries in parallel, because sources and storage may be remote. Queries that run Python code of the
    project are checked one at a time.
    """
    pool = ThreadPoolExecutor(CHECKED_AT_A_TIME, "check")
    try:
        futures = {
            model.unique_id: pool.submit(_try_check, checks, model) for model in models if not _has_code(checks, model)
        }
        results = []
        for model in models:
            signals.check()
            future = futures.get(model.unique_id)
            results.append(_await(future, signals) if future else _try_check(checks, model))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after a signal, checks may still be running
    # several queries can have the same finding, such as one about a source that they share
    findings = list(dict.fromkeys(finding for result in results if isinstance(result, tuple) for finding in result))
    findings += refusal_findings([result for result in results if isinstance(result, StartRefusal)])
    if findings:
        raise FindingsError(findings)
    return [result for result in results if isinstance(result, CheckedQuery)]


def _await(future: Future[_Checked], signals: StopSignals) -> _Checked:
    """Returns the result of a check. Raises: StopRequestedError, without waiting for the check."""
    while not wait([future], POLL_SECONDS).done:
        signals.check()
    return future.result()


def _has_code(checks: CheckContext, model: CompiledModel) -> bool:
    """Whether preparing the query runs Python code of the project, which may not be thread-safe."""
    compiled = checks.loaded.compiled
    project = compiled.project
    upstream = {*compiled.upstream(model.unique_id), model.unique_id}
    models = any(compiled.models[node].file.is_python for node in upstream if node in compiled.models)
    sources = any(table.python for table in compiled.tables_of(model.unique_id))
    return bool(project.functions) or models or sources or any(output.python for output in model.outputs)


def _try_check(checks: CheckContext, model: CompiledModel) -> _Checked:
    try:
        return _check(checks, model)
    except FindingsError as error:
        return error.findings


def _check(checks: CheckContext, model: CompiledModel) -> CheckedQuery | StartRefusal:
    planned = plan_on_checkpoint(checks, model)
    ready = planned.ready(checks)
    if isinstance(ready, CheckedQuery):
        try:
            ready.check_files(checks)
        except DatabaseError:
            ready = replace(ready, is_unchecked=True)  # the start of the query connects again, and retries
        if not checks.adds_batches:
            return replace(ready, warnings=ready.written_files(checks))
    return ready


@dataclass(frozen=True)
class PlannedQuery:
    """A query with its plan or why it cannot start, before its outputs and its checkpoint are checked. The other fields
    are as in `CheckedQuery`.
    """

    query: PreparedQuery
    plan: QueryPlan | StartRefusal
    root: str
    storage: Storage
    state: CheckpointState
    locked: int
    is_parallel: bool

    def ready(self, checks: CheckContext) -> CheckedQuery | StartRefusal:
        """Returns the query whose outputs and checkpoint can be checked."""
        if isinstance(self.plan, StartRefusal):
            return self.plan
        after = tuple(name for name in stored_inputs(self.query.compiled, self.query.model) if name in checks.written)
        return CheckedQuery(
            self.query, self.plan, self.root, self.storage, self.state, self.locked, after, self.is_parallel
        )


def lock_existing(checks: CheckContext, models: Sequence[CompiledModel]) -> None:
    """Locks the version that the query of each model would use, if there is one, until the first one that another run
    has. Raises: FindingsError.
    """
    for model in models:
        with storage_problems(checks.wanted_root(model), storage_location(checks.loaded, model), checks.secrets):
            storage, root = checks.storage_of(checks.wanted_root(model))
            _lock_existing(checks, model, storage, root, is_parallel=checks.parallel.runs_parallel(model, root))


def existing_version(checks: CheckContext, model: CompiledModel) -> str | None:
    """Returns the folder of the version that the query of `model` would use, None if there is none. Raises: OSError,
    Spark's errors.
    """
    _, root = checks.storage_of(checks.wanted_root(model))
    is_parallel = checks.parallel.runs_parallel(model, root)
    version = read_versions_file(checks.storage_of, root).chosen(parallel=is_parallel)
    return version_root(root, version) if version else None


def _lock_existing(
    checks: CheckContext, model: CompiledModel, storage: Storage, root: str, *, is_parallel: bool
) -> int:
    """Locks the version that the query of `model` would use, unless that is done, and returns it (0: there is none)."""
    version = read_versions_file(checks.storage_of, root).chosen(parallel=is_parallel)
    if version and not checks.locks.holds(version_root(root, version)):
        checks.locks.add(storage, version_root(root, version), model.name, model.file.location)
    return version


def plan_on_checkpoint(checks: CheckContext, model: CompiledModel) -> PlannedQuery:
    """Returns the query of `model`, analyzed and planned on its checkpoint, which is locked. Raises: FindingsError."""
    loaded, request, secrets = checks.loaded, checks.request, checks.secrets
    wanted = checks.wanted_root(model)
    with storage_problems(wanted, storage_location(loaded, model), secrets):
        storage, root = checks.storage_of(wanted)
        is_parallel = checks.parallel.runs_parallel(model, root)
        locked = _lock_existing(checks, model, storage, root, is_parallel=is_parallel)
        state = read_checkpoint(checks.storage_of, root, parallel=is_parallel)
        # another run has created a version between the two readings
        if state.version != locked:
            raise FindingsError([_started_meanwhile(model)])
    # a quarantine that a full refresh keeps, or a version that the refresh which is retried has begun
    is_kept = model.unique_id in request.kept or has_begun_since(state.ledger, request.refreshed_since)
    full_refresh = request.full_refresh and not is_kept
    resumes = state.is_used and not full_refresh and unrestartable(loaded.compiled, model) is None
    compiled = checks.outputs.resolve([model.unique_id])
    sources = loaded.compiled.upstream(model.unique_id)
    misread = header_findings(loaded.compiled, sources)
    misread += type_findings(loaded.compiled, sources, checks.runtime.session, resumes=resumes)
    if misread:
        raise FindingsError(misread)
    ledger = state.ledger if resumes else None
    if ledger is not None and model.name in request.migrate:
        ledger = migrated(ledger, loaded.compiled.project.target.spark)
    query = prepare_query(compiled, model, checks.runtime, secrets, ledger)
    with storage_problems(wanted, storage_location(loaded, model), secrets):
        so_far = read_so_far(checks.storage_of, root, state, query.identity)
    options = StartOptions(model.name in request.accept_state_change, full_refresh, is_parallel)
    plan = plan_model(
        compiled,
        model,
        query.identity,
        state,
        options,
        find_signature=query.comparable_signature,
        find_ids=lambda: query.input_ids,
        read_so_far=so_far,
    )
    return PlannedQuery(query, plan, root, storage, state, locked, is_parallel)


def plan_with_spark(
    loaded: Loaded, models: Sequence[CompiledModel], request: PlanRequest, reason: str | None = None
) -> ProjectPlan:
    """Returns the plan of `models`. `reason` is as in `spark_for_check`.

    Raises: FindingsError if Spark cannot start; KeyboardInterrupt after a signal.
    """
    project, secrets = request.project, Secrets(request.project.env)
    with spark_for_check(loaded, models, project, secrets, "plan", reason) as (runtime, signals):
        run = RunRequest(project, request.selection, parallel=request.parallel)
        checks = CheckContext(loaded, run, runtime, secrets, NoLocks(secrets, lambda _: None))
        planned = {}
        for stage in stages(loaded.compiled, models):
            for model in stage:
                signals.check()
                planned[model.unique_id] = _plan(checks, model)
        verdicts = [planned[model.unique_id] for model in models]
        differences_of = stored_differences(loaded.compiled, checks.storage_of, storage_base(loaded))
        queries = with_breaks(loaded.compiled, verdicts, differences_of)
        removed = removed_queries(loaded, checks.storage_of, storage_base(loaded))
        found = with_previous_names(loaded.compiled, queries, removed)
        found = (*found, *(removed if request.selection == EVERYTHING else ()))
        return ProjectPlan(loaded.compiled.project.target.name, found, runtime.version)


def _plan(checks: CheckContext, model: CompiledModel) -> QueryVerdict:
    """Returns the verdict on the query of `model`, after the checks that a run makes before it starts any query."""
    try:
        planned = plan_on_checkpoint(checks, model)
    except FindingsError as error:
        return QueryVerdict(model.name, Verdict.REFUSE, error.findings[0].message, findings=error.findings)
    plan, unanswered = planned.plan, None
    try:
        ready = planned.ready(checks)
        if isinstance(ready, CheckedQuery):
            ready.check_files(checks)
            ready.record_output(checks)
    except FindingsError as error:
        plan = StartRefusal(error.findings)
    except DatabaseError as error:
        unanswered = str(error)
    finally:
        planned.query.release()
    found = checks.loaded.compiled, model, planned.query.identity, planned.state, plan
    verdict = describe(*found, has_spark=True, is_parallel=planned.is_parallel)
    if unanswered is None:
        return verdict
    return replace(verdict, verdict=Verdict.UNDECIDED, reason=f"its table could not be checked: {unanswered}")
