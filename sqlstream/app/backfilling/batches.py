"""Writes batches of history into the sink of a query, so that an interruption at any moment loses and repeats nothing.

The steps: the batch is recorded with the number after the last one; its offsets, those of the last batch, are written
to the checkpoint; Spark runs it on a temporary checkpoint and writes it to the sink with that number; it is committed.
From the first step to the last no run starts the query, and a repetition runs the same batch again: a sink that has it
ignores it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.app.running.places import storage_base
from sqlstream.app.running.ready import CheckContext, CheckedQuery
from sqlstream.app.running.signals import StopRequestedError, StopSignals
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.configuration.config import Trigger
from sqlstream.spark.backfilling.checkpoint import write_history
from sqlstream.spark.backfilling.sinks import has_batch
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record
from sqlstream.spark.replaying.copies import temporary_folder
from sqlstream.spark.running.start import StartOrder, start_query
from sqlstream.spark.spark_errors import error_finding
from sqlstream.spark.storage.batch_logs import archive_entry
from sqlstream.spark.storage.storage import Storage
from sqlstream.spark.storage.storages import SessionStorages
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.state.backfill.record import Backfill, BackfillRecord, SourceHistory, record_path
from sqlstream.state.backfill.refusals import unfinished
from sqlstream.state.batch_logs import COMMITS_LINES, OFFSETS_LINES, is_complete
from sqlstream.state.layout import archive_moment, archive_path, checkpoint_path
from sqlstream.state.results.backfill import BackfilledBatch
from sqlstream.state.runs.progress import ROWS_OUT

POLL_SECONDS = 0.2
"""How often to check for a stop request."""


@dataclass
class HistoryWriter:
    """Writes the batches of one locked query, whose last batch `last` is committed, and updates its `record`."""

    query: CheckedQuery
    checks: CheckContext
    signals: StopSignals
    record: BackfillRecord
    last: int

    def write(self, sources: Mapping[str, SourceHistory], since: str | None, until: str | None) -> BackfilledBatch:
        """Writes one batch of history. Raises: FindingsError, StopRequestedError."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        backfill = Backfill(self.last + 1, now, since, until, sources)
        self._save(BackfillRecord((*self.record.entries, backfill)))
        return self._run(backfill)

    def complete(self, backfill: Backfill) -> BackfilledBatch:
        """Completes the backfill that was interrupted last. Raises: FindingsError, StopRequestedError."""
        return replace(self._run(backfill), is_completed=True)

    def _run(self, backfill: Backfill) -> BackfilledBatch:
        storage, checkpoint = self._storage
        identity = storage.read_text(f"{checkpoint}/metadata") or ""
        planned = _entry(storage, f"{checkpoint}/offsets/{self.last}", OFFSETS_LINES)
        committed = _entry(storage, f"{checkpoint}/commits/{self.last}", COMMITS_LINES)
        self._confirm()
        storage.write_text(f"{checkpoint}/offsets/{backfill.batch}", planned)
        query_id = _query_id(identity)
        is_local = self.checks.loaded.compiled.project.target.is_local
        session = self.checks.runtime.session
        with temporary_folder(session, None if is_local else storage_base(self.checks.loaded)) as folder:
            write_history(session, folder, backfill, identity, planned, committed)
            rows_in, rows_out = self._write_to_sink(backfill, folder, query_id)
        self._confirm()
        storage.write_text(f"{checkpoint}/commits/{backfill.batch}", committed)
        self.last = backfill.batch
        return BackfilledBatch(backfill.batch, backfill.sources, rows_in, rows_out)

    def _write_to_sink(self, backfill: Backfill, folder: str, query_id: str) -> tuple[int | None, int | None]:
        order = replace(self.query.order(self.checks), checkpoint=folder, trigger=Trigger(kind="once"))
        try:
            query = start_query(order, self.checks.secrets)
            try:
                while not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type] # also accepts fractions
                    self.signals.check()
            finally:
                query.stop()
            return _counts(query)
        except (StopRequestedError, *SPARK_ERRORS) as error:
            if self._take_back(backfill, order, query_id):
                raise self._failure(error, backfill) from error
            raise FindingsError([self._unfinished(backfill)]) from error

    def _take_back(self, backfill: Backfill, order: StartOrder, query_id: str) -> bool:
        """Removes a failed backfill from the checkpoint if no sink has its batch. Returns whether it did."""
        targets = _targets(order, self.checks)
        try:
            if any(has_batch(target, backfill.batch, query_id) is not False for target in targets):
                return False
        except (OSError, DatabaseError, *SPARK_ERRORS):
            return False
        storages, version = SessionStorages(self.checks.runtime.session), self.query.state.version
        _, checkpoint = self._storage
        archive = archive_path(self.query.root, version, archive_moment())
        with suppress(FileNotFoundError):
            archive_entry(storages, f"{checkpoint}/offsets/{backfill.batch}", checkpoint, archive)
        self._save(BackfillRecord(self.record.entries[:-1]))
        return True

    def _failure(self, error: BaseException, backfill: Backfill) -> Exception:
        if isinstance(error, StopRequestedError):
            return error
        model, secrets = self.query.query.model, self.checks.secrets
        what = f"the backfill of `{model.name}` failed in batch {backfill.batch}, and nothing was written"
        record = read_corrupt_record(error)
        place = Place(model.file.location)
        if record is not None:
            return FindingsError([corrupt_record_finding(record, what, place, secrets, self.query.query.tables)])
        fix = "fix the cause, and repeat the command"
        return FindingsError(
            [error_finding(error, code="query-failed", what=what, place=place, secrets=secrets, fix=fix)]
        )

    def _unfinished(self, backfill: Backfill) -> Finding:
        model = self.query.query.model
        return unfinished(model.name, backfill.batch, model.file.location)

    def _save(self, record: BackfillRecord) -> None:
        self._confirm()
        storage, root = self.checks.storage_of(self.query.root)
        storage.write_text(record_path(root, self.query.state.version), record.to_json())
        self.record = record

    def _confirm(self) -> None:
        model = self.query.query.model
        self.checks.locks.confirm(self.query.lock_root, model.name, model.file.location)

    @property
    def _storage(self) -> tuple[Storage, str]:
        return self.checks.storage_of(checkpoint_path(self.query.root, self.query.state.version))


def _targets(order: StartOrder, checks: CheckContext) -> Sequence[SinkTarget]:
    model, frame = order.query.model, order.query.frame
    pairs = zip(model.outputs, (order.output, *order.also), strict=True)
    return [SinkTarget(model, output, place, frame, checks.secrets) for output, place in pairs]


def _entry(storage: Storage, path: str, lines: int) -> str:
    text = storage.read_text(path)
    if text is None or not is_complete(text, lines):
        raise OSError(f"{path} is missing or incomplete")
    return text


def _query_id(identity: str) -> str:
    return str(json.loads(identity)["id"])


def _counts(query: StreamingQuery) -> tuple[int | None, int | None]:
    """Returns the rows that the batch has read and emitted, None if Spark does not know them."""
    progress = query.lastProgress
    if progress is None:
        return None, None
    observed = progress.observedMetrics.get(ROWS_OUT)
    return int(progress.numInputRows), None if observed is None else int(observed["rows"])
