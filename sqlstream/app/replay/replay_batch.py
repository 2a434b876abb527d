"""`sqlstream replay`: runs a past batch of a query again, shows its rows on their way through the query, and writes it
as a unit test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.replay import batch_entries as findings
from sqlstream.app.replay.batch_entries import (
    BatchEntries,
    BatchSource,
    added_batch,
    files_between,
    no_batches,
    no_test,
    planned_at,
    sql_note,
)
from sqlstream.app.replay.copies import BatchRows, StoredCheckpoint, rerun_batch, temporary_folder
from sqlstream.app.replay.parts import Part, static_names
from sqlstream.app.replay.replayed_batch import Replayed, ReplayedNode
from sqlstream.app.replay.replayed_query import PastQuery
from sqlstream.app.replay.taps import Tap
from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.session.session import spark_for
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base, storage_location
from sqlstream.app.stored.stored_query import StoredQuery, open_query
from sqlstream.app.test.case_file import GivenRows, NewCase, RowMasker, free_name, masked_columns, run_case, write_case
from sqlstream.app.test.unit_tests import open_tests
from sqlstream.app.test.update import update_expectations
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Place
from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record, tables_with_records
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import SessionStorages, Storage, storage_for, storage_problems
from sqlstream.state.backfills import backfills_path, readable_backfills
from sqlstream.state.batch_logs import DELTA, FILES, KAFKA, from_compact, watermark_of
from sqlstream.state.checkpoints import CheckpointState, read_log
from sqlstream.state.ledger import Ledger, SourceUse
from sqlstream.state.runs.case_outcomes import Outcome
from sqlstream.state.shown_rows import ShownRows
from sqlstream.times import utc_text

SHOWN_ROWS = 20
"""The default number of rows to show of each source, view and model."""

MOST_ROWS = 1_000
"""The most rows of an input, or of the output, that a unit test gets."""

MOST_BATCHES = 20
"""The most batches that a unit test of a query with state gets."""

REPLAYED = "replayed"
"""The end of the name of the file with these tests."""

REASON = "its clock is that of the batch"
"""Why the case of a batch is not compared with the batch query."""


@dataclass(frozen=True)
class ReplayRequest:
    """A batch to replay, by default the last one of the current version. `test` is the name of the unit test to write:
    None for no test, empty for a name made of the batch.
    """

    project: ProjectRequest
    model: str
    batch: int | None = None
    version: int | None = None
    limit: int = SHOWN_ROWS
    test: str | None = None


def replay_batch(request: ReplayRequest) -> Replayed:
    """Returns the rows of a past batch, up to the source or view that fails. Only reads the checkpoint and the sources
    of the query, which may be running.

    Raises: FindingsError if the batch cannot be read again; UsageError if the model is not terminal, or the version
    does not exist.
    """
    loaded = load_for_reading(request.project)
    with open_query(loaded, request.project, request.model, request.version) as query:
        ledger = _checked(query.model, query.state)
    secrets = Secrets(request.project.env)
    batch = "the last batch" if request.batch is None else f"batch {request.batch}"
    notice = f"Starting Spark to replay {batch} of {request.model}"
    problems = storage_problems(query.root, storage_location(loaded, query.model), secrets)
    with spark_for(loaded, [query.model], request.project, secrets, notice) as (runtime, signals), problems:
        stored = StoredCheckpoint(runtime.session, query.checkpoint)
        number = stored.last() if request.batch is None else request.batch
        _check_stream(query, number, storage_for(query.root, runtime.session))
        past = PastQuery(loaded, query.model, ledger, runtime, secrets, has_ended=stored.is_committed(number))
        replay = QueryReplay(loaded, query.model, query.checkpoint, past, runtime, secrets, signals)
        entries = replay.entries(number)
        nodes, failures = _until_failure(replay.nodes(entries, request.limit))
        case = None if request.test is None or failures else collect_test(replay, entries, request.test)
        notes = tuple(_notes(query, past, entries, storage_for(query.checkpoint, runtime.session)[0].modified))
    at, watermark = (_moment(ms) for ms in (planned_at(entries.planned), watermark_of(entries.planned)))
    shown = Replayed(
        query.model.name, query.state.version, entries.number, at, watermark, nodes, notes, failures=failures
    )
    return shown if case is None else _with_test(request.project, shown, case)


def _checked(model: CompiledModel, state: CheckpointState) -> Ledger:
    """Returns the ledger of a query with batches that can be replayed. Raises: FindingsError, UsageError."""
    place, why = model.file.location, None
    if not model.streaming:
        why = "it is a batch model, which has no checkpoint"
    elif model.config.trigger.facts.has_epochs:
        why = "a continuous query has no batches"
    elif state.unreadable:
        why = f"its ledger cannot be read: {state.unreadable}"
    elif state.version and state.ledger is None:
        why = "its ledger is missing"
    if why is not None:
        raise FindingsError([no_batches(model.name, why, place)])
    if state.ledger is None:
        raise UsageError(f"`{model.name}` has not run yet, so there is no batch to replay")
    return state.ledger


def _until_failure(nodes: Iterator[ReplayedNode]) -> tuple[tuple[ReplayedNode, ...], tuple[Finding, ...]]:
    """Returns the nodes up to the first one that fails, and why it fails."""
    found: list[ReplayedNode] = []
    try:
        found.extend(nodes)  # keeps what comes before an error
    except FindingsError as error:
        return tuple(found), tuple(error.findings)
    return tuple(found), ()


def _check_stream(query: StoredQuery, number: int, place: tuple[Storage, str]) -> None:
    """Raises: FindingsError if the batch is one of a backfill or a release, whose rows are in no log of the stream."""
    storage, root = place
    log = readable_backfills(storage.read_text(backfills_path(root, query.state.version)))
    for entry in log.entries:
        if entry.batch == number:
            model, is_release = query.model, entry.release is not None
            raise FindingsError([added_batch(model.name, number, model.file.location, is_release=is_release)])


def _notes(
    query: StoredQuery, past: PastQuery, entries: BatchEntries, modified: Callable[[str], float | None]
) -> Iterator[str]:
    """Yields what can differ from the batch that ran."""
    changed_at = past.ledger.history[-1].at if past.has_ended and len(past.ledger.history) > 1 else None
    written = modified(f"{query.checkpoint}/offsets/{entries.number}")
    if changed_at is not None and written is not None and written < datetime.fromisoformat(changed_at).timestamp():
        yield f"the query has changed since this batch, at {changed_at}; this is what its later form returns"
    elif past.query.changed:
        yield sql_note(past.query.changed, has_ended=past.has_ended)
    static = static_names(past.query.compiled, past.model)
    if static:
        yield f"{quoted_list(static)} {'is' if len(static) == 1 else 'are'} read as of now, not as of the batch"


def _moment(milliseconds: int | None) -> str | None:
    """Returns a time in ms since 1970 in ISO 8601 (UTC)."""
    if milliseconds is None:
        return None
    return utc_text(datetime.fromtimestamp(milliseconds / 1000, UTC))


def _with_test(project: ProjectRequest, shown: Replayed, case: TestOfBatch) -> Replayed:
    path, name, passes, notes = case.write(project)
    return replace(shown, test=(path, name, passes), notes=(*shown.notes, *notes))


@dataclass(frozen=True)
class TestOfBatch:
    """A unit test that is not written yet. With `is_exact`, it expects the rows that came out of the batch; otherwise
    its expectation is what the model emits for all batches up to this one.
    """

    compiled: CompiledProject
    case: NewCase
    is_exact: bool

    def write(self, project: ProjectRequest) -> tuple[str, str, bool, tuple[str, ...]]:
        """Writes the test, and runs it. Returns its file, its name, whether it passes, and notes about it. Raises:
        FindingsError.
        """
        tests = open_tests(project).tests
        every: tuple[UnitTest | BrokenTest, ...] = (*tests.cases, *tests.broken)
        name = free_name(self.case.name, [test.name for test in every if test.model == self.case.model])
        case = replace(self.case, name=name)
        path = write_case(self.compiled, case, RowMasker(Secrets(project.env)), REPLAYED)
        only = UnitTestRequest(project, Selection((f"unit_test:{case.model}.{name}",)))
        outcome = run_case(only, path, is_recorded=False)
        is_masked = any(given.masked for given in case.given)
        # the batch emitted other rows: of the values before masking, or only a part of what the query emits in the end
        if not outcome.succeeded and (is_masked or not self.is_exact):
            list(update_expectations(project.folder, outcome.results))
            outcome = run_case(only, path, is_recorded=False)
        passes = all(result.outcome is Outcome.PASSED for result in outcome.results) and bool(outcome.results)
        return path, name, passes, tuple(self._notes(is_masked=is_masked))

    def _notes(self, *, is_masked: bool) -> Iterator[str]:
        if not self.is_exact:
            yield (
                "the unit test has all batches up to this one, and expects what the query has emitted when they are "
                "fully processed"
            )
        if is_masked:
            yield "the unit test has other values in masked columns, and expects what the model emits for them"


def collect_test(replay: QueryReplay, entries: BatchEntries, wanted: str) -> TestOfBatch:
    """Returns the unit test of a batch with all its rows. `wanted` is its name, empty for one made of the batch.

    Raises: FindingsError if there are too many rows or batches.
    """
    query, stateful = replay.query, replay.query.is_stateful
    numbers = range(entries.number + 1) if stateful else [entries.number]
    if len(numbers) > MOST_BATCHES:
        raise FindingsError([_too_many_batches(replay, entries.number)])
    batches = [replay.entries(number) for number in numbers]
    compiled = query.query.compiled
    _check_readers(replay, batches)
    given = [*_streams(replay, batches, is_batched=stateful), *_static(replay)]
    name = wanted or f"batch_{entries.number}"
    if stateful:
        return TestOfBatch(compiled, NewCase(query.model.name, name, given), is_exact=False)
    *_, last = replay.nodes(entries, MOST_ROWS + 1)  # the model
    output = _all_rows(replay, last)
    at = _clock(entries)
    case = NewCase(query.model.name, name, given, output, at, None if at is None else REASON)
    return TestOfBatch(compiled, case, is_exact=True)


def _clock(entries: BatchEntries) -> str | None:
    at = planned_at(entries.planned)
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")


def _streams(replay: QueryReplay, batches: list[BatchEntries], *, is_batched: bool) -> Iterator[GivenRows]:
    compiled = replay.query.query.compiled
    for part in replay.query.parts:
        if part.table is not None:
            nodes = (replay.alone(part, entries, MOST_ROWS + 1) for entries in batches)
            rows = tuple(_all_rows(replay, node) for node in nodes)
            yield GivenRows(part.unique_id, rows, masked_columns(compiled, part.unique_id), is_batched)


def _static(replay: QueryReplay) -> Iterator[GivenRows]:
    """Yields the present rows of static tables. Seeds have their own rows in a unit test."""
    compiled = replay.query.query.compiled
    upstream = compiled.upstream(replay.query.model.unique_id)
    for node, table in compiled.tables.items():
        if node in upstream and table.mode != "stream":
            rows = replay.query.static_rows(node, MOST_ROWS + 1)
            found = ReplayedNode("source", rows.name, node, rows, len(rows.rows))
            yield GivenRows(node, (_all_rows(replay, found),), masked_columns(compiled, node))


def _all_rows(replay: QueryReplay, node: ReplayedNode) -> ShownRows:
    """Returns all rows of a node. Raises: FindingsError if there are too many."""
    if node.rows is not None and node.count is not None and node.count <= MOST_ROWS:
        return node.rows
    model = replay.model
    why = node.note or "its rows are unknown"
    if node.count:
        why = f"{quoted(node.name)} has {node.count:,} rows in it, and a unit test gets at most {MOST_ROWS:,}"
    fix = f"replay a smaller batch; or record a test with `sqlstream test --record {model.name}`"
    raise FindingsError([no_test(model.name, why, fix, model.file.location)])


def _too_many_batches(replay: QueryReplay, batch: int) -> Finding:
    model = replay.model
    return no_test(
        model.name,
        f"its state before batch {batch} depends on all earlier batches, and a unit test gets at most {MOST_BATCHES}",
        f"replay a batch up to {MOST_BATCHES - 1}; or record a test with `sqlstream test --record {model.name}`",
        model.file.location,
    )


def _check_readers(replay: QueryReplay, batches: list[BatchEntries]) -> None:
    """Raises: FindingsError if two readers of one source have read different data: a unit test gives it once."""
    for entries in batches:
        read: dict[str, tuple[SourceUse, object]] = {}
        for source in entries.sources(replay.ledger.identity.sources):
            use, offsets = read.setdefault(source.use.table, (source.use, (source.start, source.end)))
            if offsets != (source.start, source.end):
                model = replay.model
                why = (
                    f"batch {entries.number} has read different data of {quoted(use.table)} in two places of the query"
                )
                fix = f"record a test with `sqlstream test --record {model.name}`"
                raise FindingsError([no_test(model.name, why, fix, model.file.location)])


_KNOWN_FORMS = (FILES, KAFKA, DELTA)
"""The forms of offsets for which a source returns the same rows again."""


@dataclass(frozen=True)
class QueryReplay:
    """Replays batches of one version of the query of `model`, whose checkpoint is in the folder `checkpoint`."""

    loaded: Loaded
    model: CompiledModel
    checkpoint: str
    query: PastQuery
    runtime: SparkRuntime
    secrets: Secrets
    signals: StopSignals

    @property
    def ledger(self) -> Ledger:
        """The ledger of the query that ran."""
        return self.query.ledger

    @property
    def _stored(self) -> StoredCheckpoint:
        return StoredCheckpoint(self.runtime.session, self.checkpoint)

    def entries(self, number: int) -> BatchEntries:
        """Returns what the logs say about a batch that can be read again. Raises: FindingsError."""
        found = self._stored.entries(number)
        if found is None:
            known, place = self._stored.batches(), self.model.file.location
            raise FindingsError([findings.unknown_batch(self.model.name, number, known, place)])
        for source in found.sources(self.ledger.identity.sources):
            self._check(source, number)
        return found

    def _check(self, source: BatchSource, number: int) -> None:
        """Raises: FindingsError if the source cannot read the data of the batch again."""
        model, table, place = self.model.name, source.use.table, self.model.file.location
        if source.end is None:
            return
        if source.form not in _KNOWN_FORMS:
            raise FindingsError([findings.unknown_offsets(model, table, place)])
        if source.form != FILES:
            return
        storage, path = storage_for(self.checkpoint, self.runtime.session)
        files = files_between(read_log(storage, f"{path}/sources/{source.key}", from_compact), *source.log_range)
        if files is None:
            raise FindingsError([findings.unknown_files(model, table, number, place)])
        storages = SessionStorages(self.runtime.session)
        gone = [file for file in files if not storages.exists(file)]
        if gone:
            what, otherwise = f"batch {number} of {quoted(model)}", "replay a batch whose files still exist"
            raise FindingsError([findings.gone_files(what, gone, otherwise, place)])

    def nodes(self, entries: BatchEntries, limit: int) -> Iterator[ReplayedNode]:
        """Yields the sources, views and the model with at most `limit` rows each. Raises: FindingsError at the first
        one that fails.
        """
        query, model = self.query, self.query.model
        for part in query.parts:
            if part not in query.behind_state:
                yield self.alone(part, entries, limit)
        why = self._lacks_state(entries)
        if why is not None:
            behind = [(part.name, part.unique_id, "view") for part in query.behind_state]
            unknown = [*behind, (model.name, model.unique_id, "model")]
            yield from (ReplayedNode(kind, name, node, note=why) for name, node, kind in unknown)
            return
        taps = tuple((part, query.tap(part)) for part in query.behind_state)
        used = tuple(tap for _, tap in taps if tap.columns)
        frame = query.model_frame(used, limit)
        rows, observed = self._rerun(frame, entries, self._sources(entries), limit, model.name, with_state=True)
        yield from (_tapped(part, tap, tap.rows(observed, limit), limit) for part, tap in taps)
        yield replace(_node("model", model.name, model.unique_id, rows, limit), late_rows=rows.late)

    def alone(self, part: Part, entries: BatchEntries, limit: int) -> ReplayedNode:
        """Returns the rows of a source or stateless view in a batch. Raises: FindingsError."""
        sources = [
            source
            for source in self._sources(entries)
            if source.use.via == part.via or source.use.via.startswith(f"{part.via}/")
        ]
        rows, _ = self._rerun(
            self.query.frame(part), entries.only(sources), sources, limit, part.name, with_state=False
        )
        return _node("view" if part.view is not None else "source", part.name, part.unique_id, rows, limit)

    def _sources(self, entries: BatchEntries) -> tuple[BatchSource, ...]:
        return entries.sources(self.ledger.identity.sources)

    def _rerun(
        self,
        frame: DataFrame,
        entries: BatchEntries,
        sources: Sequence[BatchSource],
        limit: int,
        name: str,
        *,
        with_state: bool,
    ) -> tuple[BatchRows, Mapping[str, object]]:
        self.signals.check()
        if all(source.end is None for source in sources):  # no data of these sources has been planned yet
            return BatchRows((), (), 0), {}
        # Spark refuses complete mode without an aggregation
        mode = self.ledger.identity.output_mode if with_state else "append"
        is_local = self.loaded.compiled.project.target.is_local
        with temporary_folder(self.runtime.session, None if is_local else storage_base(self.loaded)) as folder:
            self._stored.copy(folder, entries, sources, with_state=with_state)
            with self._failures(entries.number, name):
                return rerun_batch(frame, folder, mode, limit)

    @contextmanager
    def _failures(self, number: int, name: str) -> Iterator[None]:
        """Converts Spark's errors in the body to a finding. Raises: FindingsError."""
        try:
            yield
        except SPARK_ERRORS as error:
            what = f"batch {number} of `{self.model.name}` fails again, at `{name}`"
            raise FindingsError([self._failure(error, what)]) from error

    def _failure(self, error: Exception, what: str) -> Finding:
        place, compiled = Place(self.model.file.location), self.query.query.compiled
        record = read_corrupt_record(error)
        if record is not None:
            tables = tables_with_records(compiled, self.model.unique_id)
            return corrupt_record_finding(record, what, place, self.secrets, tables)
        return error_finding(error, code="query-failed", what=what, place=place, secrets=self.secrets)

    def _lacks_state(self, entries: BatchEntries) -> str | None:
        """Returns why the state before a batch cannot be loaded, None if it can."""
        if not self.query.is_stateful or entries.number == 0:
            return None
        known = self._stored.state_batches()
        if known is None or entries.number in known:
            return None
        possible = sorted(known.intersection(self._stored.batches()) - {0})
        from_batch = f"it is possible from batch {possible[0]} on" if possible else "no batch has its state left"
        return f"Spark has removed the state before batch {entries.number}; {from_batch}"


def _tapped(part: Part, tap: Tap, rows: BatchRows | None, limit: int) -> ReplayedNode:
    if rows is None:
        why = "the state has only what the model reads of it, and these rows are not there"
        return ReplayedNode("view", part.name, part.unique_id, note=why)
    note = None if tap.is_complete else "other columns are missing, because the model does not read them from the state"
    return _node("view", part.name, part.unique_id, rows, limit, note)


def _node(kind: str, name: str, node: str, rows: BatchRows, limit: int, note: str | None = None) -> ReplayedNode:
    return ReplayedNode(kind, name, node, ShownRows(name, node, rows.columns, rows.rows, limit), rows.count, note)
