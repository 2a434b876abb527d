"""A case that Spark has analyzed, and its results: in its own batches, in other batches, after an upgrade, in a table,
or as a batch query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.formats.formats import format_of
from sqlstream.project.unit_tests.unit_test import BetweenBatches
from sqlstream.project.yaml import Located
from sqlstream.spark.jvm.errors import error_finding, fragment_of
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, causes_of
from sqlstream.spark.jvm.plans import is_stateful
from sqlstream.spark.queries.prepare import columns_of, query_signature
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.memory_streams import Clock, RowMaker, SystemClock
from sqlstream.spark.reading.plain_rows import all_rows
from sqlstream.spark.reading.python_code import import_name, is_data_source, is_foreach
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.micro_batches import (
    RefusedRowsError,
    SinkTarget,
    count_keys,
    last_rows,
    refusing_no_sequence,
)
from sqlstream.spark.writing.table_formats.merging import DELETES
from sqlstream.spark.writing.writers import batch_writer
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.plan import Action, StartOptions, plan_model
from sqlstream.state.readers import source_uses
from sqlstream.state.refusals import StartRefusal, refusal_findings
from sqlstream.state.runs.case_outcomes import Observed, Row, Value
from sqlstream.testing.cases import Case, GivenBatch, table_output
from sqlstream.testing.expected import moment
from sqlstream.testing.frames import CaseFrames
from sqlstream.testing.stream import (
    CaseStream,
    IndexedBatch,
    Part,
    Sink,
    SinkError,
    call_sink,
    checkpoint_folder,
    write_each,
)
from sqlstream.version import __version__

TEST_QUERY = "test"
"""The query id in the batches of unit tests."""


@dataclass(frozen=True)
class PreparedCase:
    """A case that Spark has analyzed. `frame` has the rows of its model over the inputs in `frames`."""

    case: Case
    frames: CaseFrames
    frame: DataFrame
    secrets: Secrets

    @property
    def is_stateful(self) -> bool:
        """Whether the query keeps state."""
        return is_stateful(self.frame)

    def renew(self) -> PreparedCase:
        """Returns the same case over new streams that have emitted no rows."""
        return replace(self, frame=self.frames.renew())

    def observe(self) -> Observed:
        """Returns the result of the case's own batches. Raises: FindingsError if an upgrade is refused."""
        output = table_output(self.case.model)
        expects_table = self.case.test.expect.table is not None and output is not None
        table = SinkTable(self.case.model, output) if expects_table and output else None
        observed = self._observe(self._sink(table))
        return observed if table is None else replace(observed, table=table.rows(self.frame.columns))

    def _observe(self, sink: Sink | None) -> Observed:
        if not self.case.model.streaming:
            return self.batch(self.frame, sink)
        parts = [self._part()]
        older = self.case.older
        if older is not None:
            old = CaseFrames(older, NodeReader(older.compiled, self.frames.inputs.readers), self.frames.streams)
            frame = old.build()
            old.check_left_out(frame)
            parts.insert(0, Part(old, frame, older.model.config.output_mode))
            check_upgrade(older, frame, self.case, self.frame)
        return self.stream(self.own_steps(), parts, sink)

    def stream(
        self,
        steps: Sequence[IndexedBatch | BetweenBatches],
        parts: Sequence[Part] | None = None,
        sink: Sink | None = None,
    ) -> Observed:
        """Returns the result of other batches of the same rows."""
        with checkpoint_folder() as folder:
            run = CaseStream(parts or [self._part()], self._clock(), folder, sink)
            return run.run(steps, lambda error: self._failed(run.batches(), error))

    def batch(self, frame: DataFrame, sink: Sink | None = None) -> Observed:
        """Returns the rows of a static `frame`, after `sink` has got them."""
        try:
            rows = all_rows(frame)
            if sink is not None:
                call_sink(sink, frame, 0)
        except (*SPARK_ERRORS, SinkError) as error:
            return self._failed((), error)
        return Observed(tuple(frame.dtypes), (rows,))

    def _sink(self, table: SinkTable | None) -> Sink | None:
        """Returns what gets the batches: the function of the sink if the test sets `call_sink`, and `table`."""
        function = self._function()
        if table is None or function is None:
            return function if table is None else table.write

        def write(rows: DataFrame, number: int) -> None:
            function(rows, number)
            table.write(rows, number)

        return write

    def _function(self) -> Sink | None:
        output = self.case.model.output
        if output is None or output.python is None or not self.case.test.document.call_sink:
            return None
        made = import_name(output.python, output.location)
        if is_data_source(made):
            what, why = f"`{output.python}` is a data source", "only Spark can write with it"
            fix = "remove `call_sink`, and test its writer in Python"
            raise FindingsError([Finding("unit-test-expect", what, why, fix, self.case.test.location)])
        if is_foreach(made):
            return write_each(made)
        missing = self.secrets.missing(output.options, output.location)
        if missing:
            raise FindingsError(missing)
        target = SinkTarget(self.case.model, output, None, self.frame, self.secrets)
        writer = batch_writer(target)
        if writer is None:
            return None
        return lambda rows, number: writer.write(rows, target.batch(number, TEST_QUERY))

    def _part(self) -> Part:
        return Part(self.frames, self.frame, self.case.model.config.output_mode)

    def own_steps(self) -> list[IndexedBatch | BetweenBatches]:
        """Returns the case's own batches, and the steps between them."""
        # the rows of all batches of a stream are one list, from which each batch takes the next ones
        begun: dict[str, int] = {}
        batches: dict[str, int] = {}
        steps: list[IndexedBatch | BetweenBatches] = []
        for step in self.case.steps:
            if not isinstance(step, GivenBatch):
                steps.append(step)
                continue
            rows: dict[str, tuple[int, ...]] = {}
            for node_id, _ in step.rows:
                count = self.frames.streams[node_id].counts[batches.get(node_id, 0)]
                begin = begun.get(node_id, 0)
                rows[node_id] = (*rows.get(node_id, ()), *range(begin, begin + count))
                begun[node_id], batches[node_id] = begin + count, batches.get(node_id, 0) + 1
            steps.append(IndexedBatch(rows, None if step.at is None else moment(self.frame.sparkSession, step.at)))
        return steps

    def _clock(self) -> Clock:
        test, session = self.case.test, self.frame.sparkSession
        if test.document.at is not None:
            return Clock(session, moment(session, Located(test.document.at, test.locations["at"])))
        return Clock(session, 0) if any(feed.at for feed in self.case.feeds) else SystemClock(session)

    def _failed(self, batches: tuple[tuple[Row, ...], ...], error: Exception) -> Observed:
        conditions, record = conditions_of(error), read_corrupt_record(error)
        stated = f"`expect: {{error: {conditions[0] if conditions else '...'}}}`"
        finding = error_finding(
            error,
            code="query-failed",
            what=f"the query of `{self.case.model.name}` failed",
            place=self.case.compiled.place_of_words(self.case.model, *fragment_of(error)),
            secrets=self.secrets,
            fix=f"fix the model, or expect the failure with {stated}",
        )
        if record is not None:
            what, place = f"the query of `{self.case.model.name}` failed", Place(self.case.model.file.location)
            finding = corrupt_record_finding(record, what, place, self.secrets, ())
        if isinstance(error, SinkError):
            finding = replace(finding, why=f"its sink reports: {error}", location=self.case.model.location_of("sink"))
        return Observed(tuple(self.frame.dtypes), batches, conditions=conditions, error=finding)


def conditions_of(error: BaseException) -> tuple[str, ...]:
    """Returns Spark's error conditions of an error and its causes, or the class of an error in a sink's code."""
    if isinstance(error, SinkError):
        return (type(error.__cause__).__name__,)
    return tuple(cause.condition for cause in causes_of(error) if cause.condition is not None)


class SinkTable:
    """The table to which `model` writes in the sink `output`, from empty. It has the columns of all batches so far."""

    def __init__(self, model: CompiledModel, output: Output) -> None:
        self._config, self._facts = model.config, format_of(output.format)
        self._keys = model.config.unique_key if self._facts.takes_keys else ()
        self._replaces = not model.streaming or model.config.output_mode == "complete"
        self._rows: dict[object, dict[str, Value]] = {}
        self._deleted: dict[object, dict[str, Value]] = {}

    def write(self, rows: DataFrame, _number: int) -> None:
        """Applies a micro-batch. Raises: RefusedRowsError if the sink would refuse its keys; Spark's errors."""
        config, keys = self._config, self._keys
        if keys and config.sequence_by:
            with refusing_no_sequence():
                last = last_rows(rows, keys, config.sequence_by, config.delete_when, config.unavailable_columns)
                self._apply(last)
        else:
            self._apply(rows)

    def _apply(self, rows: DataFrame) -> None:
        config, keys = self._config, self._keys
        # Delta Lake and Iceberg replace a whole table without checking keys
        if keys and (self._facts.is_database or not self._replaces):
            count_keys(rows, keys)
        marked = rows.selectExpr("*", f"coalesce(({config.delete_when or 'false'}), false) as {DELETES}")
        names = [name.lower() for name in marked.columns]
        if self._replaces:
            self._rows, self._deleted = {}, {}
        for values in RowMaker(rows.sparkSession).rows(marked):
            row = dict(zip(names, values, strict=True))
            is_deleted = row.pop(DELETES)
            key = self._key(row)
            if config.sequence_by and self._is_outdated(key, row):
                continue
            if is_deleted:
                self._rows.pop(key, None)
                self._deleted[key] = row
            else:
                # a column that only the model before an upgrade writes keeps its value, as does one without a value
                listed = row.get((config.unavailable_columns or "").lower())
                without = {str(name).lower() for name in listed} if isinstance(listed, list | tuple) else set()
                kept = {name: value for name, value in row.items() if name not in without}
                self._rows[key] = {**self._rows.get(key, {}), **kept}

    def _is_outdated(self, key: object, row: dict[str, Value]) -> bool:
        """Returns whether a row with this key, or its deletion, has a higher sequence."""
        known = (self._rows.get(key), self._deleted.get(key))
        return any(other is not None and self._sequence(row) < self._sequence(other) for other in known)

    def _sequence(self, row: dict[str, Value]) -> tuple[Any, ...]:
        return tuple(_comparable(row.get(name.lower())) for name in self._config.sequence_by)

    def _key(self, row: dict[str, Value]) -> object:
        """Returns what identifies a row: its key, or without keys a new number."""
        if not self._keys or self._replaces:
            return len(self._rows)
        values = [row.get(key.lower()) for key in self._keys]
        if self._facts.is_database and None in values:
            raise RefusedRowsError("a row has null in the unique_key: leave such rows out, or use coalesce()")
        return repr(values)  # lists and mappings have no hash

    def rows(self, columns: Sequence[str]) -> tuple[Row, ...]:
        """Returns all rows with these columns; null where a row was written without one."""
        return tuple(tuple(row.get(name.lower()) for name in columns) for row in self._rows.values())


def _comparable(value: Any) -> tuple[Any, ...]:
    """Returns a value, in a tuple, as Spark orders it: a struct by its fields, and null before all others."""
    if value is None:
        return ()
    parts = list(value.values()) if isinstance(value, dict) else value
    return tuple(map(_comparable, parts)) if isinstance(parts, list) else (value,)


def check_upgrade(old: Case, old_frame: DataFrame, new: Case, new_frame: DataFrame) -> None:
    """Raises: FindingsError if `run` would refuse the new model on the checkpoint of the old one."""
    before = _identity(old, old_frame, None)
    spark_version = old_frame.sparkSession.version
    signature = query_signature(old.compiled, old.model, old_frame, before, None)
    ledger = Ledger(before, 1, "", __version__, spark_version, str(Action.START), signature=signature)
    state = CheckpointState(1, ledger, has_batches=True, ledger_path="the ledger", last_commit=0)
    after = _identity(new, new_frame, ledger)
    find_signature = partial(query_signature, new.compiled, new.model, new_frame, after, ledger)
    options = StartOptions()
    plan = plan_model(new.compiled, new.model, after, state, options, find_signature=find_signature, in_memory=True)
    if isinstance(plan, StartRefusal):
        findings = refusal_findings([plan])
        fix = f"undo the change, or expect the refusal with `expect: {{error: {findings[0].code}}}`"
        raise FindingsError([replace(finding, fix=fix) for finding in findings])


def _identity(case: Case, frame: DataFrame, ledger: Ledger | None) -> QueryIdentity:
    uses = source_uses(case.compiled, case.model, ledger)
    columns = columns_of(frame)
    return identity_of(case.compiled, case.model, uses, columns, stateful=is_stateful(frame), settings={})
