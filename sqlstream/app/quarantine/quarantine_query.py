"""Reads the quarantine of a query, and writes rows of it to the sinks of the model, each once.

A release is a batch of the stream, as a backfill is. Its rows are written to a folder beside the checkpoint first, with
their ids: they are what the batch writes however often it runs, and what is no longer in quarantine afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, array_compact, col, count_if, explode, expr, lit, size, when
from pyspark.sql.functions import count as count_

from sqlstream.app.backfill.backfill_batches import HistoryWriter
from sqlstream.app.backfill.backfill_query import check_stream, checked_query
from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.quarantine.quarantine import Quarantine, QuarantineRequest, Released, ReleaseRequest
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.stored.stored_query import terminal_model
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.own_rows import quarantine_name
from sqlstream.compiler.rewrite.data_tests import BATCH, ERRORS, QUARANTINE_ID, QUARANTINED_AT, QUERY_ID, passes
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Place
from sqlstream.project.files.paths import escaped
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.spark.jvm.errors import error_finding, read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.micro_batches import cached, column_of
from sqlstream.spark.writing.quarantine import quarantine_target
from sqlstream.spark.writing.stored_rows import can_read, stored_rows
from sqlstream.state.backfills import BackfillLog, Release, unfinished
from sqlstream.state.checkpoints import unrestartable
from sqlstream.state.layout import checkpoint_path, version_root
from sqlstream.state.lost_outputs import find_query_id
from sqlstream.state.shown_rows import ShownRows

CODE = "cannot-release"

_IDS = f"{QUARANTINE_ID} string"
"""What is read of released rows to know them."""

_VIOLATED = "sqlstream: violated tests"
"""A column beside those of the quarantine, which no model can have."""


def show_quarantine(request: QuarantineRequest) -> Quarantine:
    """Returns the rows in the quarantine of a query, without those that were released. Also works during a run.

    Raises: FindingsError if the query cannot run, or the quarantine cannot be read; UsageError for a model without a
    quarantine, or a wrong condition.
    """
    loaded = load(request.project)
    model = terminal_model(loaded, request.model)
    check_quarantine_of(loaded, model)
    purpose = f"read the quarantine of {model.name}"
    with (
        checked_query(loaded, model, request.project, purpose, writes=False) as (query, checks, _),
        _reading(model, checks.secrets),
    ):
        rows = _Rows(query, checks, query.backfills(checks), query.state.last_commit)
        left, released = rows.left(), rows.count_released()
        chosen = None if left is None else _where(left, request.where)
        if chosen is None:
            shown = ShownRows(quarantine_name(model), model.unique_id, (), (), request.limit)
            return Quarantine(model.name, query.plan.version, 0, released, {}, shown)
        with cached(chosen):
            number = chosen.count()
            tests = _counts(chosen.select(explode(col(f"{ERRORS}.name")).alias("test")))
            ordered = chosen.orderBy(BATCH, QUARANTINED_AT, QUARANTINE_ID)
            first = ordered.select(
                QUARANTINE_ID, BATCH, col(f"{ERRORS}.name").alias(ERRORS), *map(column_of, _columns(query))
            )
            found = first_rows(first, request.limit)
        shown = ShownRows(quarantine_name(model), model.unique_id, columns_of(first), found, request.limit)
        return Quarantine(model.name, query.plan.version, number, released, tests, shown)


def release_rows(request: ReleaseRequest) -> Released:
    """Writes quarantined rows to the sinks of their model, each once, and returns what was written. First completes a
    release that was interrupted. Rows that still violate a test stay in quarantine.

    Raises: FindingsError if the query cannot take the rows, or runs; UsageError for a model without a quarantine, a
    wrong condition or a wrong change.
    """
    loaded = load(request.project)
    model = terminal_model(loaded, request.model)
    check_quarantine_of(loaded, model)
    if request.where is not None or request.every:  # what is only completed was checked before
        _check_keys(loaded, model, request)
    purpose = f"{'plan the release' if request.dry_run else 'release rows'} of {model.name}"
    with checked_query(loaded, model, request.project, purpose, writes=not request.dry_run) as found:
        return _Releasing(*found, request).run()


def check_quarantine_of(loaded: Loaded, model: CompiledModel) -> None:
    """Raises: UsageError if the model has no quarantine, or one in a sink that cannot be read."""
    quarantine = loaded.compiled.quarantines.get(model.unique_id)
    if quarantine is None:
        raise UsageError(
            f"`{model.name}` has no quarantine: it needs a data test with `on_violation: quarantine`, and "
            "`quarantine_sink` in its configuration"
        )
    output = quarantine.outputs[0]
    if not can_read(output.format):
        raise UsageError(
            f"the quarantine of `{model.name}` is in sink `{output.sink}` (format {output.format}), which sqlstream "
            "cannot read; it can read files, tables of Delta Lake and Iceberg, and databases"
        )


def _check_keys(loaded: Loaded, model: CompiledModel, request: ReleaseRequest) -> None:
    """Checks what is known without Spark. Raises: FindingsError."""
    config, why = model.config, unrestartable(loaded.compiled, model)
    if why is not None:
        fix = f"correct the rows where they come from, and run it: `sqlstream run --select {model.name}`"
        raise _refused(model, f"it starts with a new checkpoint in every run, because {why}", fix)
    if config.unique_key and not config.sequence_by and not request.replaces:
        raise _refused(
            model,
            f"it replaces rows by their {quoted_list(config.unique_key)}, and a released row would replace a later one "
            "with the same key",
            "set sequence_by, with which the latest row wins; or add --replace if the sink has no later rows with "
            "these keys",
        )


@dataclass(frozen=True)
class _Rows:
    """The quarantined rows of a query whose batches up to `last` are committed. `log` has the releases."""

    query: CheckedQuery
    checks: CheckContext
    log: BackfillLog
    last: int

    def left(self) -> DataFrame | None:
        """Returns the rows that were not released, with all columns of the quarantine. None before the first row.
        Raises: DatabaseError, FindingsError, OSError, Spark's errors.
        """
        query = self.query.query
        if query.marked is None:
            return None
        place, secrets = self.query.quarantine(self.checks), self.checks.secrets
        rows = stored_rows(quarantine_target(query.compiled, query.model, place, query.marked, secrets))
        query_id = find_query_id(*self.checks.storage_of(checkpoint_path(self.query.root, self.query.state.version)))
        if rows is None or query_id is None:
            return None
        # a batch that is not committed will be written again, with other ids; rows without an id were not quarantined
        is_known = (col(BATCH) <= self.last) & col(QUARANTINE_ID).isNotNull()
        rows = rows.where((col(QUERY_ID) == query_id) & is_known)
        released = self._released()
        if released is None:
            return rows
        return rows.join(released, QUARANTINE_ID, "left_anti").select(*map(column_of, rows.columns))

    def count_released(self) -> int:
        """Returns the number of rows that were released."""
        return sum(release.rows for release in self.log.releases(self.last))

    def _released(self) -> DataFrame | None:
        folders = [escaped(release.folder) for release in self.log.releases(self.last)]
        return self.checks.runtime.session.read.schema(_IDS).parquet(*folders) if folders else None


@dataclass(frozen=True)
class _Releasing:
    query: CheckedQuery
    checks: CheckContext
    signals: StopSignals
    request: ReleaseRequest

    def run(self) -> Released:
        model, request = self.query.query.model, self.request
        log, last = self.query.backfills(self.checks), self.query.state.last_commit
        begun = log.unfinished(last)
        if begun is not None and begun.release is None:
            raise FindingsError([unfinished(model.name, begun, model.file.location)])
        if self.query.query.identity.stateful and model.config.output_mode != "append":
            why = "it keeps state, and each batch replaces rows of its groups by newer ones"
            raise _refused(model, why, "correct the rows where they come from")
        check_stream(self.query, self.checks, begun, partial(_refused, model))
        writer = HistoryWriter(self.query, self.checks, self.signals, log, last)
        done = Released(model.name, self.query.plan.version, dry_run=request.dry_run, notes=self._notes())
        if begun is not None and begun.release is not None and not request.dry_run:
            writer.complete(begun)
            done = replace(done, completed=begun.release.rows, completed_batch=begun.batch)
        if request.where is None and not request.every:
            if done.completed_batch is None:
                raise UsageError("say which rows to release with --where, or release all with --all")
            return done
        with _reading(model, self.checks.secrets):
            left = _Rows(self.query, self.checks, writer.log, writer.last).left()
            if left is None:
                return done
            return self._release(writer, self._changed(_where(left, request.where)), done)

    def _release(self, writer: HistoryWriter, chosen: DataFrame, done: Released) -> Released:
        """Releases those of the `chosen` rows that violate no test."""
        tests = [test for test in self.query.query.model.file.data_tests if test.leaves_out or test.action == "fail"]
        violated = array_compact(array(*(when(~expr(passes(test)), lit(test.name)) for test in tests)))
        checked = chosen.withColumn(_VIOLATED, violated)
        with cached(checked):
            is_clean = size(column_of(_VIOLATED)) == 0
            (row,) = checked.agg(count_if(is_clean).alias("clean"), count_if(~is_clean).alias("left")).collect()
            done = replace(done, rows=row["clean"], left_rows=row["left"])
            if done.left_rows:
                done = replace(done, left=_counts(checked.select(explode(column_of(_VIOLATED)).alias("test"))))
            if self.request.dry_run or not done.rows:
                return done
            folder = f"{version_root(self.query.root, self.query.state.version)}/released/{writer.last + 1}"
            checked.where(is_clean).drop(_VIOLATED).write.mode("overwrite").parquet(folder)
        writer.release(Release(done.rows, folder, self.request.where, dict(self.request.changes)))
        return replace(done, batch=writer.last)

    def _changed(self, rows: DataFrame) -> DataFrame:
        """Returns the rows with the requested new values. Raises: UsageError."""
        names = {name.lower(): name for name in _columns(self.query)}
        changes = {}
        for name, sql in self.request.changes.items():
            found = names.get(name.lower())
            if found is None:
                hint = did_you_mean(name, names.values())
                raise UsageError(f"--set: `{self.request.model}` has no column `{name}`; {hint}")
            with _usage(f"--set {name}", sql):
                changes[found] = expr(sql).cast(rows.schema[found].dataType)
                rows.select(changes[found]).schema  # noqa: B018 - has Spark analyze the expression
        return rows.withColumns(changes) if changes else rows

    def _notes(self) -> tuple[str, ...]:
        query, notes = self.query.query, []
        if any(output.format == "kafka" for output in query.model.outputs):
            notes.append("Kafka gets each row at least once: after an interruption, some can be there twice")
        further = [each for each in query.compiled.models.values() if each.file.rows_of == query.model.name]
        sinks = [output.sink for each in further for output in each.outputs]
        if sinks:
            notes.append(f"the sinks {quoted_list(sinks)} have separate queries and do not get the rows")
        return tuple(notes)


def _columns(query: CheckedQuery) -> Sequence[str]:
    return query.query.frame.columns


def _counts(names: DataFrame) -> dict[str, int]:
    """Returns how often each value of the column `test` occurs, the most frequent first."""
    found = names.groupBy("test").agg(count_(lit(1)).alias("rows")).collect()
    return {row["test"]: row["rows"] for row in sorted(found, key=lambda row: (-row["rows"], row["test"]))}


def _where(rows: DataFrame, condition: str | None) -> DataFrame:
    """Returns the rows that meet `condition`. Raises: UsageError for one that Spark cannot use."""
    if condition is None:
        return rows
    with _usage("--where", condition):
        return rows.where(expr(condition))


@contextmanager
def _usage(option: str, sql: str) -> Iterator[None]:
    """Raises: UsageError for an error of Spark in the body, which analyzes the `sql` of an option."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise UsageError(f"{option}: Spark cannot use {quoted(sql)}: {read_error(error).message}") from error


@contextmanager
def _reading(model: CompiledModel, secrets: Secrets) -> Iterator[None]:
    """Raises: FindingsError for errors in the body, which reads the quarantine."""
    try:
        yield
    except (DatabaseError, *SPARK_ERRORS) as error:
        what = f"the quarantine of `{model.name}` cannot be read"
        location = model.location_of("quarantine_sink")
        if isinstance(error, DatabaseError):
            finding = Finding("storage-unusable", what, str(error), "check the server, and its log", location)
        else:
            fix, place = "repair the sink of the quarantine, or restore it from a backup", Place(location)
            finding = error_finding(error, code="storage-unusable", what=what, place=place, secrets=secrets, fix=fix)
        raise FindingsError([finding]) from error


def _refused(model: CompiledModel, why: str, fix: str) -> FindingsError:
    what = f"rows of the quarantine of `{model.name}` cannot be released"
    return FindingsError([Finding(CODE, what, why, fix, model.file.location)])
