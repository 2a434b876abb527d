"""Finds the history of each source of a query that a backfill can write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlstream.app.running.ready import CheckedQuery
from sqlstream.app.state.source_files import files_at
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.reading.kafka_ends import first_and_end_offsets, offsets_at
from sqlstream.spark.running.endpoints import UnreachableError, check_brokers
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import error_finding
from sqlstream.spark.storage.storage import LocalStorage, storage_for
from sqlstream.state.backfill.ranges import Offsets, TimeRange, unread_history, unread_records
from sqlstream.state.backfill.record import BackfillRecord, SourceHistory
from sqlstream.state.backfill.refusals import beside, cannot_backfill
from sqlstream.state.batch_logs import DELTA, FILES, KAFKA, is_complete_start
from sqlstream.state.progress.positions import SourcePosition, read_position
from sqlstream.state.progress.source_files import file_choice

_DELTA_START = frozenset({"startingversion", "startingtimestamp"})
"""Options with which a stream of a Delta table leaves out history."""


@dataclass(frozen=True)
class HistoryFinder:
    """Finds the history of the sources of `query` between two times, without what the backfills of `record` have."""

    query: CheckedQuery
    runtime: SparkRuntime
    secrets: Secrets
    record: BackfillRecord
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
        table = self._table(source)
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

    def _table(self, source: SourcePosition) -> SourceTable | None:
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
        files = unread_history(found, source.read, choice, self.times, self.record.histories(source.key))
        return [SourceHistory(table.full_name, FILES, files)] if files else []

    def _records(self, source: SourcePosition, table: SourceTable) -> list[SourceHistory]:
        """Returns the offsets below those with which the stream began."""
        first = self._first_offsets(source, table)
        try:
            check_brokers(each for each in self.query.query.endpoints if each.what == table.described)
            since, until = self._limits(table, first)
        except (UnreachableError, *SPARK_ERRORS) as error:
            raise FindingsError([self._unreadable(table, error)]) from error
        rounds = unread_records(first, since, until, self.record.histories(source.key))
        return [SourceHistory(table.full_name, KAFKA, start=start, end=stop) for start, stop in rounds]

    def _limits(self, table: SourceTable, first: Offsets) -> tuple[Offsets, Offsets]:
        """Returns the offsets at which the range of times begins and ends, none after those in `first`."""
        options, session = self.secrets.resolve_all(table.options), self.runtime.session
        earliest, _ = first_and_end_offsets(session, options, first)
        known = {topic: sorted(partitions) for topic, partitions in first.items()}
        since = _within(earliest, first)
        if self.times.since is not None:
            at = offsets_at(session, options, known, self.times.since)
            since = _later(since, _with_defaults(at, first))
        until: Offsets = first
        if self.times.until is not None:
            at = offsets_at(session, options, known, self.times.until)
            until = _within(at, first)
        return since, until

    def _unreadable(self, table: SourceTable, error: Exception) -> Finding:
        return error_finding(
            error,
            code="source-unreadable",
            what=f"the history of {table.described} cannot be read",
            place=Place(table.location),
            secrets=self.secrets,
        )

    def _first_offsets(self, source: SourcePosition, table: SourceTable) -> Offsets:
        version = self.query.state.version
        storage, root = storage_for(self.query.root, self.runtime.session)
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


def _later(one: Offsets, other: Offsets) -> Offsets:
    return {
        topic: {partition: max(offset, other[topic][partition]) for partition, offset in partitions.items()}
        for topic, partitions in one.items()
    }
