"""Reads the quarantine of a query, and writes rows of it to the sinks of the model, each once.

A release is a batch of the stream, as a backfill is. Its rows are written to a folder beside the checkpoint first, with
their ids: they are what the batch writes however often it runs, and what is no longer in quarantine afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, array_compact, col, count_if, explode, expr, lit, size, when
from pyspark.sql.functions import count as count_

from sqlstream.app.backfill.backfill_batches import HistoryWriter
from sqlstream.app.backfill.backfill_query import check_added_batches, checked_query, repeated_rows
from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.quarantine.quarantine import Quarantine, QuarantineRequest, Released, ReleaseRequest
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import readable_storage
from sqlstream.app.stored.stored_query import terminal_model
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.rewrite.data_tests import (
    BATCH,
    ERRORS,
    QUARANTINE_COLUMNS,
    QUARANTINE_ID,
    QUARANTINED_AT,
    QUERY_ID,
    SOURCE,
    passes,
)
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Place
from sqlstream.project.files.paths import escaped
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.spark.jvm.errors import error_finding, read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.micro_batches import (
    RefusedRowsError,
    SinkTarget,
    column_of,
    count_keys,
    discard,
    last_rows,
    refusing_no_sequence,
)
from sqlstream.spark.writing.outputs import checked_rows
from sqlstream.spark.writing.stored_rows import stored_rows
from sqlstream.state.backfills import (
    BackfillLog,
    Release,
    backfills_path,
    readable_backfills,
    released_path,
    unfinished,
)
from sqlstream.state.checkpoints import last_commit, read_versions_file, unrestartable
from sqlstream.state.layout import checkpoint_path
from sqlstream.state.lost_outputs import find_query_id
from sqlstream.state.shown_rows import ShownRows

CODE = "cannot-release"

_NOTHING_CHOSEN = "say which rows to release with --where, or release all with --all"

_IDS = f"{QUARANTINE_ID} string"
"""What is read of released rows to know them."""

_VIOLATED = "sqlstream: violated tests"
"""A column beside those of the quarantine, which no model can have."""


def show_quarantine(request: QuarantineRequest) -> Quarantine:
    """Returns the rows in the quarantine of a query, without those that were released, or its late rows. Also works
    during a run.

    Raises: FindingsError if the query cannot run, or the rows cannot be read; UsageError for a model without such rows,
    or a wrong condition.
    """
    loaded = load(request.project)
    model = terminal_model(loaded, request.model)
    place = _late_rows_of(loaded, model) if request.late else quarantine_of(loaded, model)
    purpose = f"read the {'late rows' if request.late else 'quarantine'} of {model.name}"
    with checked_query(loaded, model, request.project, purpose, writes=False) as (query, checks, _):
        log, last, version = query.backfills(checks), query.state.last_commit, query.plan.version
        released = 0 if request.late else sum(release.rows for release in log.releases(last).values())
        target = query.late_target(checks) if request.late else query.quarantine_target(checks)
        with _kept_rows(query, checks, target, log, last) as left:
            if left is None:
                shown = ShownRows(place.name, model.unique_id, (), (), request.limit)
                return Quarantine(model.name, version, 0, released, {}, shown, late=request.late)
            chosen = _where(left, request.where)
            names = col(f"{ERRORS}.name")
            # all late rows have the same name of a test
            errors = col(f"{ERRORS}.message") if request.late else names
            own = [name for name in left.columns if name not in dict(QUARANTINE_COLUMNS)]
            first = chosen.orderBy(BATCH, QUARANTINED_AT, QUARANTINE_ID).select(
                QUARANTINE_ID, BATCH, errors.alias(ERRORS), *map(column_of, own), SOURCE
            )
            with _usage(_given(request.where)):
                number, tests = chosen.count(), _counts(chosen.select(explode(names).alias("test")))
                found = first_rows(first, request.limit)
            shown = ShownRows(place.name, model.unique_id, columns_of(first), found, request.limit)
            return Quarantine(model.name, version, number, released, tests, shown, late=request.late)


def release_rows(request: ReleaseRequest) -> Released:
    """Writes quarantined rows to the sinks of their model, each once, and returns what was written. First completes a
    release that was interrupted. Rows that still violate a test stay in quarantine.

    Raises: FindingsError if the query cannot take the rows, or runs; UsageError for a model without a quarantine, a
    wrong condition or a wrong change.
    """
    loaded = load(request.project)
    model = terminal_model(loaded, request.model)
    quarantine_of(loaded, model)
    if request.where is not None or request.every:  # what is only completed was checked before
        _check_keys(loaded, model, request)
    else:
        _check_interrupted(loaded, model)
    purpose = f"{'plan the release' if request.dry_run else 'release rows'} of {model.name}"
    with checked_query(loaded, model, request.project, purpose, writes=not request.dry_run) as found:
        return _Releasing(*found, request).run()


def quarantine_of(loaded: Loaded, model: CompiledModel) -> CompiledModel:
    """Returns the rows of `model` in quarantine. Raises: UsageError if it has none, or a sink that cannot be read."""
    quarantine = loaded.compiled.quarantines.get(model.unique_id)
    if quarantine is None:
        late = loaded.compiled.late_rows.get(model.unique_id)
        if late is not None:
            raise UsageError(
                f"`{model.name}` has no quarantine: its late rows are in sink `{late.outputs[0].sink}` under the name "
                f"`{late.name}`; `quarantine show {model.name} --late` shows them, and they cannot be released"
            )
        raise UsageError(
            f"`{model.name}` has no quarantine: it needs a data test with `on_violation: quarantine`, and "
            "`quarantine_sink` in its configuration"
        )
    _check_readable(quarantine, f"the quarantine of `{model.name}` is")
    return quarantine


def _late_rows_of(loaded: Loaded, model: CompiledModel) -> CompiledModel:
    """Returns the late rows of `model`. Raises: UsageError if it keeps none, or in a sink that cannot be read."""
    late = loaded.compiled.late_rows.get(model.unique_id)
    if late is None:
        raise UsageError(
            f"`{model.name}` does not keep its late rows: it needs `late_rows: quarantine` and `quarantine_sink` in "
            "its configuration"
        )
    _check_readable(late, f"the late rows of `{model.name}` are")
    return late


def _check_readable(rows: CompiledModel, subject: str) -> None:
    output = rows.outputs[0]
    if not format_of(output.format).keeps_output:
        raise UsageError(
            f"{subject} in sink `{output.sink}` (format {output.format}), which sqlstream cannot read; it can read "
            "files, tables of Delta Lake and Iceberg, and databases"
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


def _check_interrupted(loaded: Loaded, model: CompiledModel) -> None:
    """Checks that there is a release to complete, if the storage can be read without Spark. Raises: UsageError."""
    storage = readable_storage(loaded)
    root = "" if storage is None else storage.root_of(model)
    if storage is None or not storage.can_read(root):
        return
    version = read_versions_file(storage.of, root).current
    files, folder = storage.of(root)
    log = readable_backfills(files.read_text(backfills_path(folder, version)))
    if not log.entries or log.unfinished(last_commit(files, folder, version)) is None:
        raise UsageError(_NOTHING_CHOSEN)


@contextmanager
def _kept_rows(
    query: CheckedQuery, checks: CheckContext, target: SinkTarget | None, log: BackfillLog, last: int
) -> Iterator[DataFrame | None]:
    """Yields the rows in `target` whose batches up to `last` are committed, without those that releases of `log` have
    written; None before the first row. Spark keeps them in memory. Raises: FindingsError, OSError.
    """
    with _reading(query.query.model, checks.secrets):
        left = None if target is None else _left(query, checks, target, log, last)
        if left is not None:
            left.persist().count()
    try:
        yield left
    finally:
        if left is not None:
            left.unpersist()


def _left(
    query: CheckedQuery, checks: CheckContext, target: SinkTarget, log: BackfillLog, last: int
) -> DataFrame | None:
    version = query.state.version
    query_id = find_query_id(*checks.storage_of(checkpoint_path(query.root, version)))
    rows = None if query_id is None else stored_rows(target)
    if rows is None:
        return None
    # a batch that is not committed will be written again, with other ids; rows without an id were not quarantined
    is_known = (col(BATCH) <= last) & col(QUARANTINE_ID).isNotNull()
    rows = rows.where((col(QUERY_ID) == query_id) & is_known)
    folders = [escaped(released_path(query.root, version, batch)) for batch in log.releases(last)]
    if not folders:
        return rows
    released = checks.runtime.session.read.schema(_IDS).parquet(*folders)
    return rows.join(released, QUARANTINE_ID, "left_anti").select(*map(column_of, rows.columns))


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
            why = "it keeps state in update mode, in which a later row may have replaced the quarantined one"
            raise _refused(model, why, "correct the rows where they come from")
        check_added_batches(self.query, self.checks, begun, partial(_refused, model))
        writer = HistoryWriter(self.query, self.checks, self.signals, log, last)
        done = Released(model.name, self.query.plan.version, dry_run=request.dry_run, notes=tuple(self._notes()))
        if begun is not None and begun.release is not None:
            if request.dry_run:
                last = begun.batch
            else:
                writer.complete_release(begun)
                last = writer.last
            done = replace(done, completed=begun.release.rows, completed_batch=begun.batch)
        if request.where is None and not request.every:
            if begun is None:
                raise UsageError(_NOTHING_CHOSEN)
            return done
        target = self.query.quarantine_target(self.checks)
        with _kept_rows(self.query, self.checks, target, writer.log, last) as left:
            return done if left is None else self._release(writer, self._changed(_where(left, request.where)), done)

    def _release(self, writer: HistoryWriter, chosen: DataFrame, done: Released) -> Released:
        """Releases those of the `chosen` rows that violate no test."""
        tests = [test for test in self.query.query.model.file.data_tests if test.leaves_out or test.action == "fail"]
        violated = array_compact(array(*(when(~expr(passes(test)), lit(test.name)) for test in tests)))
        checked, is_clean = chosen.withColumn(_VIOLATED, violated), size(column_of(_VIOLATED)) == 0
        with _usage(_given(self.request.where, self.request.changes)):
            checked.persist()  # what is tested is also what is written
            (row,) = checked.agg(count_if(is_clean).alias("clean"), count_if(~is_clean).alias("left")).collect()
            left = _counts(checked.select(explode(column_of(_VIOLATED)).alias("test")))
        done = replace(done, rows=row["clean"], left_rows=row["left"], left=left)
        if not done.rows:
            return done
        clean = checked.where(is_clean).drop(_VIOLATED)
        self._check_sink(clean)
        if self.request.dry_run:
            return done
        folder = released_path(self.query.root, self.query.state.version, writer.last + 1)
        clean.write.mode("overwrite").parquet(folder)
        checked.unpersist()
        writer.release(Release(done.rows, self.request.where, dict(self.request.changes)))
        return replace(done, batch=writer.last)

    def _check_sink(self, rows: DataFrame) -> None:
        """Checks that the sinks can take the rows: a batch that fails would stop the stream. Raises: FindingsError."""
        query = self.query.query
        model, config = query.model, query.model.config
        rows = rows.select(*map(column_of, query.frame.columns))
        fix = "leave out such rows with --where, or give them other values with --set"
        try:
            discard(checked_rows(model, query.output, rows))
            if config.sequence_by:
                with refusing_no_sequence():
                    discard(last_rows(rows, config.unique_key, config.sequence_by))
            elif config.unique_key:
                count_keys(rows, config.unique_key)
        except RefusedRowsError as error:
            raise _refused(model, str(error), fix) from error
        except SPARK_ERRORS as error:
            place, secrets = Place(model.file.location), self.checks.secrets
            found = error_finding(error, code=CODE, what=_refusal(model), place=place, secrets=secrets, fix=fix)
            raise FindingsError([found]) from error

    def _changed(self, rows: DataFrame) -> DataFrame:
        """Returns the rows with the requested new values. Raises: UsageError."""
        names = {name.lower(): name for name in self.query.query.frame.columns}
        changes = {}
        for name, sql in self.request.changes.items():
            found = names.get(name.lower())
            if found is None:
                hint = did_you_mean(name, names.values())
                raise UsageError(f"--set: `{self.request.model}` has no column `{name}`; {hint}")
            with _usage(_given(None, {name: sql})):
                changes[found] = expr(sql).cast(rows.schema[found].dataType)
                rows.select(changes[found]).schema  # noqa: B018 - has Spark analyze the expression
        return rows.withColumns(changes) if changes else rows

    def _notes(self) -> Iterator[str]:
        model, models = self.query.query.model, self.query.query.compiled.models
        yield from repeated_rows(model)
        sinks = [
            each.sink for further in models.values() if further.file.rows_of == model.name for each in further.outputs
        ]
        if sinks:
            yield f"the sinks {quoted_list(sinks)} have separate queries and do not get the rows"


def _counts(names: DataFrame) -> dict[str, int]:
    """Returns how often each value of the column `test` occurs, the most frequent first."""
    found = names.groupBy("test").agg(count_(lit(1)).alias("rows")).collect()
    return {row["test"]: row["rows"] for row in sorted(found, key=lambda row: (-row["rows"], row["test"]))}


def _where(rows: DataFrame, condition: str | None) -> DataFrame:
    """Returns the rows that meet `condition`. Raises: UsageError for one that Spark cannot use."""
    if condition is None:
        return rows
    with _usage(_given(condition)):
        return rows.where(expr(condition))


def _given(where: str | None, changes: Mapping[str, str] | None = None) -> str:
    """Returns the options with SQL, for messages."""
    options = [] if where is None else [f"--where {quoted(where)}"]
    return " and ".join([*options, *(f"--set {quoted(f'{name}={sql}')}" for name, sql in (changes or {}).items())])


@contextmanager
def _usage(options: str) -> Iterator[None]:
    """Raises: UsageError for an error of Spark in the body, which uses the SQL of `options`."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise UsageError(f"Spark cannot use {options}: {read_error(error).message}") from error


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
    return FindingsError([Finding(CODE, _refusal(model), why, fix, model.file.location)])


def _refusal(model: CompiledModel) -> str:
    return f"rows of the quarantine of `{model.name}` cannot be released"
