"""Runs one past batch of a query again: each source and view alone, and the model with its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from sqlstream.app.loading.load import Loaded
from sqlstream.app.replay import batch_entries as findings
from sqlstream.app.replay.batch_entries import BatchEntries, BatchSource, files_between
from sqlstream.app.replay.copies import BatchRows, StoredCheckpoint, rerun_batch, temporary_folder
from sqlstream.app.replay.parts import Part
from sqlstream.app.replay.replayed_batch import ReplayedNode
from sqlstream.app.replay.replayed_query import PastQuery
from sqlstream.app.replay.taps import Tap
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record, tables_with_records
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import SessionStorages, storage_for
from sqlstream.state.batch_logs import DELTA, FILES, KAFKA, from_compact
from sqlstream.state.checkpoints import read_log
from sqlstream.state.ledger import Ledger
from sqlstream.state.preview import ShownRows

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
            raise FindingsError([findings.gone_files(model, number, gone, place)])

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
