"""Finds the history of each source that a backfill can write, and writes it in batches, so that an interruption at any
moment loses and repeats nothing. Releases of quarantined rows are such batches, too.

The steps: the batch is recorded with the number after the last one; its offsets, those of the last batch, are written
to the checkpoint; Spark runs it and writes it to the sink with that number, history on a temporary checkpoint and a
release on that of the query; it is committed.
From the first step to the last no run starts the query, and a repetition runs the same batch again: a sink that has it
ignores it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.app.backfill.backfill import BackfilledBatch
from sqlstream.app.plan.ledgers import write_before_start
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.replay.batch_entries import entry_of
from sqlstream.app.replay.copies import temporary_folder, write_texts
from sqlstream.app.session.signals import StopRequestedError, StopSignals
from sqlstream.app.session.target_storage import storage_base
from sqlstream.app.stored.local_sources import files_at
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.configuration.trigger import Trigger
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.queries.failures import database_finding
from sqlstream.spark.queries.start import StartOrder, start_query
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record
from sqlstream.spark.reading.endpoints import UnreachableError, check_brokers
from sqlstream.spark.reading.kafka_ends import first_and_end_offsets, offsets_at
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import archive_entry
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.storage import SessionStorages, Storage, storage_for
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.micro_batches import BatchWriter, SinkTarget
from sqlstream.spark.writing.quarantine import quarantine_query_id, quarantine_target
from sqlstream.spark.writing.writers import database_writer
from sqlstream.state.backfills import (
    Backfill,
    BackfillLog,
    Offsets,
    Release,
    SourceHistory,
    TimeRange,
    backfills_path,
    beside,
    cannot_backfill,
    released_path,
    unfinished,
    unread_history,
    unread_records,
)
from sqlstream.state.batch_logs import (
    COMMITS_LINES,
    DELTA,
    FILES,
    KAFKA,
    OFFSETS_LINES,
    SINK_LOG,
    is_complete,
    is_complete_start,
    last_entry,
    source_offsets,
)
from sqlstream.state.layout import archive_moment, archive_path, checkpoint_path
from sqlstream.state.lost_outputs import find_query_id
from sqlstream.state.runs.progress import read_progress
from sqlstream.state.sources.positions import SourcePosition, read_position
from sqlstream.state.sources.source_files import file_choice

POLL_SECONDS = 0.2
"""How often to check for a stop request."""


@dataclass
class HistoryWriter:
    """Writes the batches of one locked query, whose last batch `last` is committed, and updates its `log`."""

    query: CheckedQuery
    checks: CheckContext
    signals: StopSignals
    log: BackfillLog
    last: int

    def write(self, sources: Mapping[str, SourceHistory], since: str | None, until: str | None) -> BackfilledBatch:
        """Writes one batch of history. Raises: FindingsError, StopRequestedError."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        backfill = Backfill(self.last + 1, now, since, until, sources)
        self._save(BackfillLog((*self.log.entries, backfill)))
        return self._run(backfill)

    def release(self, release: Release) -> None:
        """Writes one batch with the rows of a release. Raises: FindingsError, StopRequestedError."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._save(BackfillLog((*self.log.entries, Backfill(self.last + 1, now, None, None, {}, release))))
        self.complete_release(self.log.entries[-1])

    def complete(self, backfill: Backfill) -> BackfilledBatch:
        """Completes the backfill that was interrupted last. Raises: FindingsError, StopRequestedError."""
        return replace(self._run(backfill), is_completed=True)

    def complete_release(self, begun: Backfill) -> None:
        """Writes the batch of a release that has begun. Raises: FindingsError, StopRequestedError."""
        storage, checkpoint = self._storage
        planned, committed = self._last_entries()
        self._confirm()
        # Spark runs the batch on the checkpoint of the query, because the state gets a version with each batch
        offsets = f"{checkpoint}/offsets/{begun.batch}"
        if not is_complete(storage.read_text(offsets) or "", OFFSETS_LINES):  # a repetition keeps the time of the batch
            storage.write_text(offsets, next_entry(planned, committed))
        folder = released_path(self.query.root, self.query.state.version, begun.batch)
        self._write_to_sink(begun, replace(self.query.order(self.checks), released=folder))
        self.last = begun.batch

    def _run(self, backfill: Backfill) -> BackfilledBatch:
        storage, checkpoint = self._storage
        identity = storage.read_text(f"{checkpoint}/metadata") or ""
        planned, committed = self._last_entries()
        self._confirm()
        storage.write_text(f"{checkpoint}/offsets/{backfill.batch}", planned)
        is_local = self.checks.loaded.compiled.project.target.is_local
        session = self.checks.runtime.session
        with temporary_folder(session, None if is_local else storage_base(self.checks.loaded)) as folder:
            write_history(session, folder, backfill, identity, planned, committed)
            order = replace(self.query.order(self.checks), checkpoint=folder)
            rows_in, rows_out = self._write_to_sink(backfill, order)
        self._confirm()
        storage.write_text(f"{checkpoint}/commits/{backfill.batch}", committed)
        self.last = backfill.batch
        return BackfilledBatch(backfill.batch, backfill.sources, rows_in, rows_out)

    def _last_entries(self) -> tuple[str, str]:
        """Returns what the logs of offsets and of commits have about the last batch. Raises: OSError."""
        storage, checkpoint = self._storage
        return last_entries(storage, checkpoint, self.last)

    def _write_to_sink(self, backfill: Backfill, order: StartOrder) -> tuple[int | None, int | None]:
        storage, checkpoint = self._storage
        query_id = find_query_id(storage, checkpoint) or ""
        try:
            return _counts(run_once(order, self.checks.secrets, self.signals))
        except (StopRequestedError, FindingsError, DatabaseError, *SPARK_ERRORS) as error:
            if backfill.release is not None and storage.exists(f"{checkpoint}/commits/{backfill.batch}"):
                if isinstance(error, StopRequestedError):
                    raise
                return None, None  # it failed after the commit
            if self._take_back(backfill, order, query_id):
                raise self._failure(error, backfill) from error
            raise FindingsError([self._unfinished(backfill)]) from error

    def _take_back(self, backfill: Backfill, order: StartOrder, query_id: str) -> bool:
        """Removes a failed batch from the checkpoint if neither a sink nor the quarantine has it. Returns whether it
        did.
        """
        if backfill.release is not None and self.query.query.identity.stateful:
            return False  # the state has a version of the batch
        try:
            # None: only Spark knows it, so the batch may be there
            found = (has_batch(target, backfill.batch, each) for target, each in _targets(order, self.checks, query_id))
            if any(has is not False for has in found):
                return False
        except (OSError, DatabaseError, *SPARK_ERRORS):
            return False
        storages, version = SessionStorages(self.checks.runtime.session), self.query.state.version
        _, checkpoint = self._storage
        archive = archive_path(self.query.root, version, archive_moment())
        # the reverse of `write`: after an interruption between the two, the backfill can still be completed
        with suppress(FileNotFoundError):
            archive_entry(storages, f"{checkpoint}/offsets/{backfill.batch}", checkpoint, archive)
        self._save(BackfillLog(self.log.entries[:-1]))
        return True

    def _failure(self, error: BaseException, backfill: Backfill) -> Exception:
        kind = "backfill" if backfill.release is None else "release"
        name = self.query.query.model.name
        what = f"the {kind} of `{name}` failed in batch {backfill.batch}, which was taken back"
        return batch_failure(self.query, self.checks.secrets, error, what)

    def _unfinished(self, backfill: Backfill) -> Finding:
        model = self.query.query.model
        return unfinished(model.name, backfill, model.file.location)

    def _save(self, log: BackfillLog) -> None:
        write_before_start(self.query, self.checks)  # a changed query that was started and then undone left its ledger
        storage, root = self.checks.storage_of(self.query.root)
        storage.write_text(backfills_path(root, self.query.state.version), log.to_json())
        self.log = log

    def _confirm(self) -> None:
        model = self.query.query.model
        self.checks.locks.confirm(self.query.lock_root, model.name, model.file.location)

    @property
    def _storage(self) -> tuple[Storage, str]:
        return self.checks.storage_of(checkpoint_path(self.query.root, self.query.state.version))


def begun_batch(query: CheckedQuery, checks: CheckContext) -> int | None:
    """Returns the batch after the last committed one that has begun, None without one. Raises: OSError."""
    storage, checkpoint = checks.storage_of(checkpoint_path(query.root, query.state.version))
    begun = last_entry(storage.names(f"{checkpoint}/offsets"))
    return begun if begun > query.state.last_commit else None


def run_once(
    order: StartOrder, secrets: Secrets, signals: StopSignals, writer: BatchWriter | None = None
) -> StreamingQuery:
    """Runs the batch that has begun on the checkpoint of `order`, and returns the query, which has ended. With a
    `writer`, that one gets the batch instead of the sinks. Raises: FindingsError, StopRequestedError, the errors of
    sinks and of Spark.
    """
    query = start_query(replace(order, trigger=Trigger(kind="once")), secrets, writer)
    try:
        while not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type] # also accepts fractions
            signals.check()
    finally:
        query.stop()
    return query


def batch_failure(query: CheckedQuery, secrets: Secrets, error: BaseException, what: str) -> Exception:
    """Returns the error to raise after a batch of `query` has failed with `error`. `what` says what failed."""
    if isinstance(error, StopRequestedError | FindingsError):
        return error
    if isinstance(error, DatabaseError):
        return FindingsError([database_finding(query.query, error)])
    record, place = read_corrupt_record(error), Place(query.query.model.file.location)
    if record is not None:
        return FindingsError([corrupt_record_finding(record, what, place, secrets, query.query.tables)])
    fix = "fix the cause, and repeat the command"
    return FindingsError([error_finding(error, code="query-failed", what=what, place=place, secrets=secrets, fix=fix)])


def _targets(order: StartOrder, checks: CheckContext, query_id: str) -> Iterator[tuple[SinkTarget, str]]:
    """Yields the sinks and the quarantine of a query, each with the id under which it records batches."""
    query, secrets = order.query, checks.secrets
    for output, place in zip(query.model.outputs, (order.output, *order.also), strict=True):
        yield SinkTarget(query.model, output, place, query.frame, secrets), query_id
    if query.marked is not None:
        quarantine = quarantine_target(
            query.compiled.quarantines[query.model.unique_id], order.quarantine, query.marked, secrets
        )
        yield quarantine, quarantine_query_id(query_id)


def next_entry(planned: str, committed: str) -> str:
    """Returns the entry of the offsets log of a batch that reads nothing, after the batch with these two entries."""
    version, batch, *offsets = planned.split("\n")
    settings, commit = json.loads(batch), committed.split("\n")[1]
    watermark = json.loads(commit).get("nextBatchWatermarkMs", 0) if commit else 0
    settings["batchWatermarkMs"] = max(settings.get("batchWatermarkMs", 0), watermark)
    settings["batchTimestampMs"] = max(settings.get("batchTimestampMs", 0), round(time.time() * 1000))
    return "\n".join([version, json.dumps(settings, separators=(",", ":")), *offsets])


def last_entries(storage: Storage, checkpoint: str, last: int) -> tuple[str, str]:
    """Returns what the logs of offsets and of commits have about the batch `last`, which is committed. Raises: OSError,
    Spark's errors.
    """
    planned = _entry(storage, f"{checkpoint}/offsets/{last}", OFFSETS_LINES)
    return planned, _entry(storage, f"{checkpoint}/commits/{last}", COMMITS_LINES)


def _entry(storage: Storage, path: str, lines: int) -> str:
    text = storage.read_text(path)
    if text is None or not is_complete(text, lines):
        raise OSError(f"{path} is missing or incomplete")
    return text


def _counts(query: StreamingQuery) -> tuple[int | None, int | None]:
    """Returns the rows that the batch has read and emitted, None if Spark does not know them."""
    progress = query.lastProgress
    if progress is None:
        return None, None
    return int(progress.numInputRows), read_progress(query.name or "", progress.json).rows_out


_DELTA_START = frozenset({"startingversion", "startingtimestamp"})
"""Options with which a stream of a Delta table leaves out history."""


@dataclass(frozen=True)
class HistoryFinder:
    """Finds the history of the sources of `query` between two times, without what the backfills of `log` have."""

    query: CheckedQuery
    runtime: SparkRuntime
    secrets: Secrets
    log: BackfillLog
    times: TimeRange

    def find(self) -> dict[str, list[SourceHistory]]:
        """Returns the history of each source, by its name or position in the checkpoint: one entry for each batch that
        is needed to read it. Raises: FindingsError, OSError, Spark's errors.
        """
        position = read_position(
            lambda path: storage_for(path, self.runtime.session), self.query.root, self.query.state.version
        )
        found = {source.key: self._of(source) for source in position.sources}
        return {key: histories for key, histories in found.items() if histories}

    def _of(self, source: SourcePosition) -> list[SourceHistory]:
        table = self.table_of(source)
        if table is None or (source.offset is None and source.form == ""):
            return []
        if source.form == FILES:
            return self._files(source, table)
        if source.form == KAFKA:
            return self._records(source, table)
        if source.form == DELTA and not _DELTA_START & {name.lower() for name in table.options}:
            return []  # the stream has begun with all rows of the table
        raise self._refusal(
            f"sqlstream cannot read the history of its source {quoted(table.full_name)}, only that of files and Kafka",
            beside(self.query.query.model.name),
        )

    def table_of(self, source: SourcePosition) -> SourceTable | None:
        """Returns the table of a source of the checkpoint, None if it is unknown."""
        query = self.query.query
        tables = {table.full_name: table for table in query.compiled.tables_of(query.model.unique_id)}
        return tables.get(source.use.table) if source.use is not None else None

    def _files(self, source: SourcePosition, table: SourceTable) -> list[SourceHistory]:
        """Returns the files that are too old for the stream (`maxFileAge`)."""
        choice = file_choice(table.options)
        path = source.use.path if source.use is not None else None
        storage, folder = storage_for(path or "", self.runtime.session)
        if choice is None or source.read is None or path is None or not isinstance(storage, LocalStorage):
            why = (
                "its files are not on this machine"
                if not isinstance(storage, LocalStorage)
                else "it is unknown which files the stream has read, or one of its options can only be applied by Spark"
            )
            raise self._refusal(
                f"the history of its source {quoted(table.full_name)} is unknown: {why}",
                beside(self.query.query.model.name),
            )
        found = files_at(folder, choice, self.query.query.compiled.project.root) or ()
        files = unread_history(found, source.read, choice, self.times, self.log.histories(source.key))
        return [SourceHistory(table.full_name, FILES, files)] if files else []

    def _records(self, source: SourcePosition, table: SourceTable) -> list[SourceHistory]:
        """Returns the offsets below those with which the stream began."""
        first = self.first_offsets(source, table)
        try:
            check_brokers(each for each in self.query.query.endpoints if each.what == table.described)
            since, until = self._limits(table, first)
        except (UnreachableError, *SPARK_ERRORS) as error:
            raise FindingsError([self.unreadable(table, error)]) from error
        rounds = unread_records(first, since, until, self.log.histories(source.key))
        return [SourceHistory(table.full_name, KAFKA, start=start, end=stop) for start, stop in rounds]

    def _limits(self, table: SourceTable, first: Offsets) -> tuple[Offsets, Offsets]:
        """Returns the offsets at which the range of times begins and ends, none after those in `first`."""
        options, session = self.secrets.resolve_all(table.options), self.runtime.session
        earliest, _ = first_and_end_offsets(session, options, first)
        known = {topic: sorted(partitions) for topic, partitions in first.items()}
        since = _within(earliest, first)
        if self.times.since is not None:
            at = offsets_at(session, options, known, self.times.since)
            # without a record since then, a partition begins where the stream does: nothing of it is missing
            since = later_offsets(since, _with_defaults(at, first))
        until: Offsets = first
        if self.times.until is not None:
            at = offsets_at(session, options, known, self.times.until)
            # without a later record, a partition ends where the stream begins
            until = _within(at, first)
        return since, until

    def unreadable(self, table: SourceTable, error: Exception) -> Finding:
        """Returns the finding that the history of a source cannot be read."""
        return error_finding(
            error,
            code="source-unreadable",
            what=f"the history of {table.described} cannot be read",
            place=Place(table.location),
            secrets=self.secrets,
        )

    def first_offsets(self, source: SourcePosition, table: SourceTable) -> Offsets:
        """Returns the offsets with which a source of Kafka began. Raises: FindingsError, OSError."""
        version = self.query.state.version
        storage, root = storage_for(self.query.root, self.runtime.session)
        # Kafka's source keeps the offsets with which it began as the entry 0 of a log: the version, then JSON
        path = f"{root}/v{version}/checkpoint/sources/{source.key}/0"
        text = storage.read_text(path)
        if text is None or not is_complete_start(text):
            raise self._refusal(
                f"the offsets with which its source {quoted(table.full_name)} began are unknown",
                beside(self.query.query.model.name),
            )
        found: Offsets = json.loads(text.split("\n")[1])
        return found

    def _refusal(self, why: str, fix: str) -> FindingsError:
        model = self.query.query.model
        findings: Sequence[Finding] = [cannot_backfill(model.name, why, fix, model.file.location)]
        return FindingsError(findings)


def _with_defaults(offsets: Offsets, default: Offsets) -> Offsets:
    """Returns an offset for each partition of `default`, its own if `offsets` has none."""
    return {
        topic: {partition: offsets.get(topic, {}).get(partition, other) for partition, other in partitions.items()}
        for topic, partitions in default.items()
    }


def _within(offsets: Offsets, first: Offsets) -> Offsets:
    """Returns an offset for each partition of `first`, at most the one there."""
    filled = _with_defaults(offsets, first)
    return {
        topic: {partition: min(filled[topic][partition], other) for partition, other in partitions.items()}
        for topic, partitions in first.items()
    }


def later_offsets(one: Offsets, other: Offsets) -> Offsets:
    """Returns the later of two offsets of each partition of `one`."""
    return {
        topic: {
            partition: max(offset, other.get(topic, {}).get(partition, offset))
            for partition, offset in partitions.items()
        }
        for topic, partitions in one.items()
    }


# The temporary checkpoint of a backfill: one batch, which reads history, of the query with the same id; and whether
# its sink has the batch.
#
# The id and the number of the batch are those of the query's own checkpoint. So the sink records the batch as one of
# the stream, and writes it once however often it runs.


def write_history(
    session: SparkSession, folder: str, backfill: Backfill, identity: str, planned: str, committed: str
) -> None:
    """Writes a checkpoint to `folder` in which the batch of `backfill` has begun. `identity`, `planned` and `committed`
    are the file with the query's id and the entries of the last batch. Raises: OSError, Spark's errors.
    """
    number, known = backfill.batch, dict(source_offsets(planned))
    before = [(key, _start(backfill.sources.get(key), offset)) for key, offset in known.items()]
    after = [(key, _end(backfill.sources.get(key), offset)) for key, offset in known.items()]
    # Spark runs a batch that has offsets and no commit, from the offsets of the batch before it
    texts: dict[str, str | None] = {
        "metadata": identity,
        f"offsets/{number - 1}": entry_of(planned, before),
        f"commits/{number - 1}": committed,
        f"offsets/{number}": entry_of(planned, after),
    }
    for key, history in backfill.sources.items():
        if history.form == FILES:
            texts[f"sources/{key}/0"] = log_entry(history)
    write_texts(session, folder, texts)


def _start(history: SourceHistory | None, offset: Any) -> Any:
    return offset if history is None else history.start


def _end(history: SourceHistory | None, offset: Any) -> Any:
    if history is None:
        return offset
    # the log of the temporary checkpoint has all files in its only entry
    return {"logOffset": 0} if history.form == FILES else history.end


def log_entry(history: SourceHistory) -> str:
    """Returns the entry of a source's log that names the files (FileStreamSource.FileEntry)."""
    entries: list[Mapping[str, object]] = [
        {"path": file.uri, "timestamp": file.modified, "batchId": 0} for file in history.files
    ]
    return "\n".join(["v1", *(json.dumps(entry, separators=(",", ":")) for entry in entries)])


def has_batch(target: SinkTarget, number: int, query_id: str) -> bool | None:
    """Returns whether the sink records a batch as written. False for a sink that keeps no record, and None if only
    Spark knows it. Raises: OSError, DatabaseError, Spark's errors.
    """
    facts = format_of(target.output.format)
    if facts.writes_files and target.path is not None:
        storage, folder = storage_for(target.path, target.frame.sparkSession)
        return last_entry(storage.names(f"{folder}/{SINK_LOG}")) >= number
    if facts.is_table or target.output.format == "table":
        return None
    writer = database_writer(target)
    return writer is not None and writer.last_batch(query_id) >= number
