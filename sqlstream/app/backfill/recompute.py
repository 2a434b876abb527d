"""`sqlstream backfill --replace`: computes the rows of a range again, and replaces those in the sink in one step.

The query runs on a temporary checkpoint that begins empty, and reads in one batch what its stream has read so far. A
second batch, which reads nothing, has the watermark of the stream: it returns the windows that the stream has returned.

A table of a database, Delta Lake or Iceberg then changes in one transaction, and the checkpoint of the query stays as
it is. A file sink changes with an entry of its log, and only each tenth entry can list all files: empty batches lead up
to it. So after a kill, the sink has the old or the new rows, and the next run continues the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from sqlstream.app.backfill.backfill import Backfilled, BackfillRequest, RecomputedRange
from sqlstream.app.backfill.backfill_batches import (
    HistoryFinder,
    batch_failure,
    begun_batch,
    last_entries,
    later_offsets,
    log_entry,
    next_entry,
    run_once,
)
from sqlstream.app.backfill.recomputable import check_gone, check_output_mode, not_recomputable, range_of
from sqlstream.app.plan.ledgers import LedgerUpdater, write_before_start
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.replay.batch_entries import entry_of
from sqlstream.app.replay.copies import temporary_folder, write_texts
from sqlstream.app.replay.parts import static_names
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base
from sqlstream.app.versions.publisher import plain_names
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.errors import FindingsError
from sqlstream.numbers import plural
from sqlstream.project.files.paths import escaped
from sqlstream.project.formats.formats import format_of
from sqlstream.project.formats.option_types import is_fixed_zone
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.jvm.file_sink import is_compacted, sink_log
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.plans import has_only_one_aggregation, unstable_column
from sqlstream.spark.reading.endpoints import UnreachableError, check_brokers
from sqlstream.spark.reading.kafka_ends import first_and_end_offsets, offsets_at
from sqlstream.spark.storage.checkpoints import read_sink_log
from sqlstream.spark.storage.storage import SessionStorages, Storage, storage_for
from sqlstream.spark.writing.databases.database import DatabaseError, other_models
from sqlstream.spark.writing.micro_batches import BatchWriter, RefusedRowsError, SinkTarget
from sqlstream.spark.writing.outputs import checked_rows
from sqlstream.spark.writing.recomputed_rows import (
    ListingWriter,
    NewFiles,
    RangeWriter,
    add_files,
    replace_in_database,
    replace_in_table,
)
from sqlstream.spark.writing.stored_rows import stored_rows
from sqlstream.spark.writing.table_formats.table import queries_in
from sqlstream.spark.writing.table_formats.table_writers import table_of
from sqlstream.spark.writing.writers import database_writer
from sqlstream.state.backfills import (
    BackfillLog,
    HistoryFile,
    Offsets,
    SourceHistory,
    beside,
    released_path,
)
from sqlstream.state.batch_logs import DELTA, FILES, KAFKA, OFFSETS_LINES, is_complete, source_offsets, watermark_of
from sqlstream.state.layout import checkpoint_path
from sqlstream.state.lost_outputs import find_query_id
from sqlstream.state.output_files import sort_files
from sqlstream.state.readers import has_same_readers
from sqlstream.state.replacements import (
    ColumnRange,
    NotReplaceableError,
    first_read,
    folder_value,
    initial_offsets,
    removed_records,
    with_watermark,
)
from sqlstream.state.sources.positions import SourcePosition, read_position
from sqlstream.state.spark_settings import TIME_ZONE
from sqlstream.times import utc_text

_PARTS_OF_FILES = "Cannot delete file where some, but not all, rows match filter"
"""What Iceberg says if the range does not consist of whole files (ManifestFilterManager)."""

_EARLIER = timedelta(days=1)
"""How much earlier than its row a record can be: a date can begin before midnight in UTC."""

_EARLIER_IN_GROUPS = timedelta(days=2)
"""The same of a group, to which earlier records belong."""


@dataclass(frozen=True)
class Recomputation:
    """Recomputes the range of `request`. The query is checked, and locked unless nothing is written. `log` has its
    backfills. `existing` are URIs of files that are known to exist.

    The query may have changed since its last batch. Its new form computes the rows, which need nothing of its state.
    The batches that a file sink needs are batches of the new form, as in a run: the ledger has it before the first one.
    """

    query: CheckedQuery
    checks: CheckContext
    signals: StopSignals
    request: BackfillRequest
    log: BackfillLog
    existing: Collection[str] = ()

    def run(self) -> Backfilled:
        """Replaces the rows, and returns how many. Raises: FindingsError, OSError, Spark's errors."""
        found = range_of(self._model, self.query.query.identity.columns or (), self.request)
        self._check_readers()
        self._check_query()
        self._check_column(found)
        self._check_sink()
        last = self._complete_begun()
        self._check_released(found, last)
        sources = self._sources(found)
        try:
            done = self._replaced(found, sources, last)
        except (RefusedRowsError, DatabaseError, *SPARK_ERRORS) as error:
            what = f"the rows of `{self._model.name}` could not be recomputed; its sink has the rows that it had"
            if isinstance(error, RefusedRowsError):
                raise self._refused(str(error), "correct the rows in the model or in its sources") from error
            raise batch_failure(self.query, self.checks.secrets, error, what) from error
        return done if self.request.dry_run or not self._adds_files else self._shown(done)

    @property
    def _adds_files(self) -> bool:
        return format_of(self._model.outputs[0].format).writes_files

    def _shown(self, done: Backfilled) -> Backfilled:
        """Returns what was `done`, with a note if readers do not see it yet."""
        try:
            self._end_adding()
        except (FindingsError, OSError, *SPARK_ERRORS) as error:
            why = error.findings[0].message if isinstance(error, FindingsError) else str(error).partition("\n")[0]
            return replace(done, notes=(*done.notes, f"the next run shows readers the rows, because {why}"))
        return done

    def _replaced(self, found: ColumnRange, sources: Mapping[str, SourceHistory | None], last: int) -> Backfilled:
        model, dry_run = self._model, self.request.dry_run
        facts = format_of(model.outputs[0].format)
        adds_files = facts.writes_files and not dry_run
        last = self._lead_up(last) if adds_files else last
        is_local = self.checks.loaded.compiled.project.target.is_local
        with temporary_folder(self._session, None if is_local else storage_base(self.checks.loaded)) as folder:
            rows = self._compute(folder, found, sources, last)
            self.signals.check()
            before, after = -1, rows.count()
            old = self._old_files(found) if facts.writes_files else ()
            if dry_run or not facts.is_database:
                before = self._stored(found)
            done = RecomputedRange(
                model.outputs[0].sink,
                model.outputs[0].format,
                found.column,
                before,
                after,
                len(old) if facts.writes_files else None,
            )
            if not dry_run:
                self._confirm()
                done = self._write(rows, found, done, old, last)
        since, until = utc_text(found.since), utc_text(found.until)
        notes = tuple(self._notes(found, last))
        return Backfilled(model.name, self.query.plan.version, since, until, (), dry_run, notes, done)

    def _write(
        self, rows: DataFrame, found: ColumnRange, done: RecomputedRange, old: tuple[str, ...], last: int
    ) -> RecomputedRange:
        """Replaces the rows in the sink. Raises: FindingsError, RefusedRowsError, DatabaseError, Spark's errors."""
        target = self._target
        writer, table = database_writer(target), table_of(target)
        if writer is not None:
            batch = target.batch(last, self._query_id)
            return replace(done, rows_before=replace_in_database(target, writer, rows, found, batch))
        if table is not None:
            try:
                replace_in_table(target, table, rows, found)
            except SPARK_ERRORS as error:
                if _PARTS_OF_FILES not in str(error):
                    raise
                why = "Iceberg replaces whole files, and some have rows of the range and others"
                fix = "recompute whole partitions; without a date in partition_by, add one in a new version"
                raise self._refused(why, fix) from error
            return done
        new = add_files(target, rows, old, self._confirm)
        self._list(new, last + 1)
        return replace(done, files_after=len(new.files))

    def _list(self, new: NewFiles, number: int) -> None:
        """Makes the new files visible with batch `number`, which reads nothing and returns no rows. The batch has begun
        before its entry in the log of the sink exists: otherwise a run could give the number to new rows.
        """
        self._confirm()
        self._begin(number)
        try:
            self._run_begun(ListingWriter(new))
        except SPARK_ERRORS as error:
            what = f"batch {number} of `{self._model.name}`, which replaces the recomputed rows, was not committed"
            raise batch_failure(self.query, self.checks.secrets, error, what) from error

    def _complete_begun(self) -> int:
        """Completes a batch that has begun and reads nothing, such as one with which an earlier command was killed. Its
        sink may have it already. Returns the number of the last batch. Raises: FindingsError, OSError, Spark's errors.
        """
        last, begun = self.query.state.last_commit, begun_batch(self.query, self.checks)
        if begun is None:
            return last
        storage, checkpoint = self._checkpoint
        offsets = storage.read_text(f"{checkpoint}/offsets/{begun}") or ""
        before = list(source_offsets(self._entries(last)[0]))
        if not is_complete(offsets, OFFSETS_LINES) or list(source_offsets(offsets)) != before:
            run = f"`sqlstream run --available-now --select {self._model.name}`"
            raise self._refused(f"its batch {begun} has begun and is not committed", f"complete it first: {run}")
        if self.request.dry_run:
            return last
        self._record_form()
        self._run_begun()
        return begun

    def _record_form(self) -> None:
        """Records the present form of the query, as a run does before its first batch. Raises: FindingsError, OSError,
        Spark's errors.
        """
        self._confirm()
        write_before_start(self.query, self.checks)

    def _end_adding(self) -> None:
        """Records that the query has committed batches in its present form, and shows readers the files. After a kill,
        the next run does both. Raises: OSError, Spark's errors.
        """
        LedgerUpdater([self.query], self.checks, lambda _: None).finish(())
        for each in plain_names(self.query, self.checks).publications(self.query.query.identity):
            each.keep_up(self.query.plan.version)

    def _lead_up(self, last: int) -> int:
        """Adds empty batches after the `last` one until the next entry in the log of the sink lists all files, and the
        next batch returns no rows. Returns the number of the last batch. Raises: FindingsError, OSError, Spark's
        errors.
        """
        self._record_form()
        log = sink_log(self._session, self._target.path or "")
        while True:
            planned, committed = self._entries(last)
            # with another watermark, the batch returns windows
            is_quiet = not self._is_stateful or watermark_of(next_entry(planned, committed)) == watermark_of(planned)
            if is_quiet and is_compacted(log, last + 1):
                return last
            self.signals.check()
            self._confirm()
            last += 1
            self._begin(last)
            self._run_begun()

    def _begin(self, number: int) -> None:
        """Begins a batch that reads nothing."""
        storage, checkpoint = self._checkpoint
        storage.write_text(f"{checkpoint}/offsets/{number}", next_entry(*self._entries(number - 1)))

    def _compute(
        self, folder: str, found: ColumnRange, sources: Mapping[str, SourceHistory | None], last: int
    ) -> DataFrame:
        """Returns the rows of the range, from everything that the stream has read of its sources up to batch `last`.
        They are stored in `folder`. Raises: FindingsError, OSError, Spark's errors.
        """
        storage, checkpoint = self._checkpoint
        planned, _ = self._entries(last)
        rows, own = f"{folder}/rows", f"{folder}/checkpoint"
        ends = [(key, _end(history)) for key, history in sources.items()]
        texts: dict[str, str | None] = {
            "metadata": storage.read_text(f"{checkpoint}/metadata"),
            # without a watermark, no row is late
            "offsets/0": with_watermark(entry_of(planned, ends), 0),
        }
        for key, history in sources.items():
            if history is not None and history.form == FILES:
                texts[f"sources/{key}/0"] = log_entry(history)
            elif history is not None and history.form == KAFKA:
                texts[f"sources/{key}/0"] = initial_offsets(history.start)
        write_texts(self._session, own, texts)
        order = replace(self.query.order(self.checks), checkpoint=own)
        writer = RangeWriter(found.condition, rows, 1 if self._is_stateful else 0)
        run_once(order, self.checks.secrets, self.signals, writer)
        if self._is_stateful:
            entry = with_watermark(entry_of(planned, ends), watermark_of(planned) or 0)
            write_texts(self._session, own, {"offsets/1": entry})
            run_once(order, self.checks.secrets, self.signals, writer)
        return self._session.read.parquet(escaped(rows))

    def _sources(self, found: ColumnRange) -> dict[str, SourceHistory | None]:
        """Returns what the stream, and backfills, have read of each source, by its name or position in the checkpoint;
        None for nothing. Raises: FindingsError, OSError, Spark's errors.
        """
        position = read_position(self.checks.storage_of, self.query.root, self.query.state.version)
        finder = HistoryFinder(self.query, self.checks.runtime, self.checks.secrets, self.log, self.request.times)
        return {source.key: self._source(finder, source, found) for source in position.sources}

    def _source(self, finder: HistoryFinder, source: SourcePosition, found: ColumnRange) -> SourceHistory | None:
        table = finder.table_of(source)
        if source.offset is None:
            return None
        if table is not None and source.form == FILES and source.read is not None:
            return self._files(table, source)
        if table is not None and source.form == KAFKA:
            return self._records(finder, table, source, found)
        if table is not None and source.form == DELTA:
            return SourceHistory(table.full_name, DELTA, end=source.offset)
        name = quoted(source.key if table is None else table.full_name)
        raise self._refused(f"what it has read of its source {name} cannot be read again", beside(self._model.name))

    def _files(self, table: SourceTable, source: SourcePosition) -> SourceHistory:
        known = {**(source.read or {})}
        known.update((file.uri, file.modified) for done in self.log.histories(source.key) for file in done.files)
        storages = SessionStorages(self._session)
        check_gone(self._model, (uri for uri in known if uri not in self.existing and not storages.exists(uri)))
        files = sorted((HistoryFile(uri, modified) for uri, modified in known.items()), key=lambda file: file.modified)
        return SourceHistory(table.full_name, FILES, tuple(files))

    def _records(
        self, finder: HistoryFinder, table: SourceTable, source: SourcePosition, found: ColumnRange
    ) -> SourceHistory:
        end: Offsets = source.offset
        earlier = _EARLIER_IN_GROUPS if self._is_stateful else _EARLIER
        milliseconds = int((found.since.timestamp() - earlier.total_seconds()) * 1000)
        options = self.checks.secrets.resolve_all(table.options)
        first = finder.first_offsets(source, table)
        try:
            check_brokers(each for each in self.query.query.endpoints if each.what == table.described)
            earliest, _ = first_and_end_offsets(self._session, options, end)
            known = {topic: sorted(partitions) for topic, partitions in end.items()}
            at = offsets_at(self._session, options, known, milliseconds)
        except (UnreachableError, *SPARK_ERRORS) as error:
            raise FindingsError([finder.unreadable(table, error)]) from error
        try:
            start = first_read(first, earliest, list(self.log.histories(source.key)), end)
        except NotReplaceableError as error:
            raise self._refused(str(error), error.fix) from error
        removed = removed_records(start, earliest, at, end)
        if removed:
            since = f"{plural(earlier.days, 'day')} before --from"
            why = f"Kafka no longer has all records of {quoted(table.full_name)} since {since}: {', '.join(removed)}"
            raise self._refused(why, "let the range begin that long after the oldest record that Kafka still has")
        return SourceHistory(table.full_name, KAFKA, start=later_offsets(start, earliest), end=end)

    def _check_readers(self) -> None:
        """Checks that a query that has changed since its last batch reads the same streams. Raises: FindingsError."""
        ledger, name = self.query.state.ledger, self._model.name
        if ledger is None or not has_same_readers(ledger.identity, self.query.query.identity):
            why = "it has read other sources so far, and what it has read of them cannot be read again"
            raise self._refused(why, f"run the changed query first: `sqlstream run --available-now --select {name}`")

    def _check_query(self) -> None:
        """Checks that a batch returns the rows that the stream has written. Raises: FindingsError."""
        check_output_mode(self._model, self.query.query.identity)
        if self._is_stateful and not has_only_one_aggregation(self.query.query.frame):
            why = "it keeps state other than that of one aggregation by time, so its rows depend on when others came"
            raise self._refused(why, beside(self._model.name))

    def _check_column(self, found: ColumnRange) -> None:
        """Checks that the rows of the range are the same ones when they are computed again. Raises: FindingsError."""
        problem = unstable_column(self.query.query.frame, found.column)
        if problem is not None:
            why = f"{quoted(found.column)} cannot be the column of the range: {problem}"
            raise self._refused(why, "name another column with --by, such as the time of the event")
        zone = self._session.conf.get(TIME_ZONE) or ""
        is_file = format_of(self._model.outputs[0].format).writes_files
        if is_file and found.type == "timestamp" and not is_fixed_zone(zone):
            why = f"the folders of {quoted(found.column)} have times of {zone}, of which one hour a year comes twice"
            raise self._refused(why, "partition by a date or a timestamp_ntz in a new version")

    def _check_sink(self) -> None:
        """Checks that the rows in the sink are those of this query only. Raises: FindingsError, Spark's errors."""
        target = self._target
        writer, table = database_writer(target), table_of(target)
        if writer is not None:
            others = other_models(writer.database, self._model, writer.plain)
            if others:
                why = f"{quoted_list(others)} {'has' if len(others) == 1 else 'have'} written to its table, too"
                raise self._refused(why, "give each model its own table, in a new version")
        elif table is not None and table.exists():
            others = [each for each in queries_in(table) if each != self._query_id]
            if others:
                why = f"other queries have written to its table, too: {', '.join(others)}"
                raise self._refused(why, "give each query its own table, in a new version")

    def _check_released(self, found: ColumnRange, last: int) -> None:
        """Checks that no row of the range was released from quarantine: it would be lost. Raises: FindingsError."""
        releases = self.log.releases(last)
        folders = [escaped(released_path(self.query.root, self.query.state.version, batch)) for batch in releases]
        if not folders:
            return
        rows = self._session.read.parquet(*folders)
        try:
            number = rows.where(found.condition).count()
        except AnalysisException:  # they were released without this column
            number = rows.count()
        if number:
            rows_were = f"{plural(number, 'row')} {'was' if number == 1 else 'were'}"
            why = f"{rows_were} released from its quarantine into the range, and would be left out again"
            raise self._refused(why, f"recompute the time before and after; for this one, {beside(self._model.name)}")

    def _old_files(self, found: ColumnRange) -> tuple[str, ...]:
        """Returns the files of a file sink that have rows of the range. Raises: OSError, Spark's errors."""
        storage, output = storage_for(self._target.path or "", self._session)
        files = sort_files(storage.files(output), read_sink_log(storage, output), with_retention=False).committed
        values = {file.name: folder_value(file.name, found.column) for file in files}
        known = sorted({value for value in values.values() if value is not None})
        if not known:
            return ()
        # Spark itself says which time a name means, as for its readers
        name, folder = quote_identifier(found.column, always=True), "`sqlstream: folder`"
        texts = self._session.createDataFrame([(value,) for value in known], f"{folder} string")
        typed = texts.selectExpr(folder, f"cast({folder} as {found.type}) as {name}").where(found.condition)
        chosen = {row[0] for row in typed.collect()}
        return tuple(name for name, value in values.items() if value in chosen)

    def _stored(self, found: ColumnRange) -> int:
        """Returns how many rows of the range the sink has. Raises: DatabaseError, Spark's errors."""
        rows = stored_rows(self._target)
        return 0 if rows is None else rows.where(found.condition).count()

    def _notes(self, found: ColumnRange, last: int) -> Iterator[str]:
        query, model = self.query.query, self._model
        static = static_names(query.compiled, model)
        if static:
            yield f"{quoted_list(static)} {'is' if len(static) == 1 else 'are'} read as of now"
        if query.marked is not None:
            yield "rows that violate a data test with `quarantine` are left out, and not added to the quarantine"
        ledger = self.query.state.ledger
        if ledger is not None and (len(ledger.history) > 1 or self.query.plan.changes):
            name = quoted(found.column)
            yield f"the query has changed before: if {name} was another one, rows of an event can be outside the range"
            stored = stored_rows(self._target)
            missing = f"{quote_identifier(found.column, always=True)} IS NULL"
            nulls = 0 if stored is None else stored.where(missing).count()
            if nulls:
                yield f"{plural(nulls, 'row')} in the sink without a value in {name} stay: no range has them"
        watermark = watermark_of(self._entries(last)[0]) if self._is_stateful else None
        if self._is_stateful and (watermark is None or watermark < found.until.timestamp() * 1000):
            yield "windows that are still open are left to the stream"
        models = query.compiled.models.values()
        sinks = [each.sink for further in models if further.file.rows_of == model.name for each in further.outputs]
        if sinks:
            yield f"the sinks {quoted_list(sinks)} have separate queries and keep their rows"

    def _run_begun(self, writer: BatchWriter | None = None) -> None:
        run_once(self.query.order(self.checks), self.checks.secrets, self.signals, writer)

    def _entries(self, number: int) -> tuple[str, str]:
        return last_entries(*self._checkpoint, number)

    def _confirm(self) -> None:
        self.checks.locks.confirm(self.query.lock_root, self._model.name, self._model.file.location)

    @property
    def _model(self) -> CompiledModel:
        return self.query.query.model

    @property
    def _session(self) -> SparkSession:
        return self.query.query.frame.sparkSession

    @property
    def _is_stateful(self) -> bool:
        return self.query.query.identity.stateful

    @property
    def _refused(self) -> Callable[[str, str], FindingsError]:
        return partial(not_recomputable, self._model)

    @property
    def _checkpoint(self) -> tuple[Storage, str]:
        return self.checks.storage_of(checkpoint_path(self.query.root, self.query.state.version))

    @cached_property
    def _query_id(self) -> str:
        return find_query_id(*self._checkpoint) or ""

    @cached_property
    def _target(self) -> SinkTarget:
        order, query = self.query.order(self.checks), self.query.query
        frame = checked_rows(query.model, query.output, query.frame)
        return SinkTarget(query.model, query.output, order.output, frame, self.checks.secrets)


def _end(history: SourceHistory | None) -> object:
    if history is None:
        return None
    # the log of the temporary checkpoint has all files in its only entry
    return {"logOffset": 0} if history.form == FILES else history.end
