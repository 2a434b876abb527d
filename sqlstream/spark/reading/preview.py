"""The rows of models with no query of theirs started: each source is read as a static table, each model as a batch.

Spark takes in a batch all SQL that it takes in a stream: a watermark is passed over there, windows and sessions are
grouped whole. What has no batch reader is sampled first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import view_of
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record, tables_with_records
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.python_code import load_name
from sqlstream.spark.reading.rows import columns_of, first_rows
from sqlstream.spark.reading.samples import SAMPLE_SECONDS, take_sample
from sqlstream.spark.spark_errors import error_finding, read_error
from sqlstream.state.results.rows import ShownRows

NO_BATCH = "is not a valid Spark SQL Data Source"
"""What Spark says of a source that has no batch reader, as of `rate` and `socket` (_LEGACY_ERROR_TEMP_1135)."""

NOT_THERE = "check that its input exists, and fix the declaration of the source"
"""What to do where a stream gives no sample."""

LIVE = frozenset({("startingoffsets", "latest"), ("endingoffsets", "latest")})
"""Options of Kafka's stream that its batch reader refuses, or that leave it nothing to read."""

SAMPLE = "_sqlstream_sample_"
"""What the names of the tables begin with that hold samples."""

Opened = tuple[SourceTable, DataFrame]


@dataclass(frozen=True)
class Samples:
    """The samples of one session, by the full names of their sources: a source that has not changed is read once."""

    notify: Callable[[str], None]
    _taken: dict[str, Opened] = field(default_factory=dict)

    def rows(self, table: SourceTable, stream: DataFrame, wanted: int) -> DataFrame:
        """Returns the first rows of `stream`, a reader of `table`. Raises: Spark's errors."""
        known = self._taken.get(table.full_name)
        if known is None or known[0] != table:
            self.notify(
                f"Reading source {table.full_name} for up to {SAMPLE_SECONDS:.0f} s, because it can only stream"
            )
            name = f"{SAMPLE}{len(self._taken)}"
            self._taken[table.full_name] = known = table, take_sample(stream, name, wanted)
        return known[1]


@dataclass(frozen=True)
class Preview:
    """Opens the nodes of one compiled project as static rows; each of them once."""

    inputs: NodeReader
    samples: Samples
    limit: int
    _frames: dict[str, DataFrame] = field(default_factory=dict)

    def show(self, node_id: str) -> ShownRows:
        """Returns the first rows of a model, seed or source. Raises: FindingsError, on the node's own lines."""
        frame = self._rows(node_id)
        try:
            rows = first_rows(frame, self.limit)
        except SPARK_ERRORS as error:
            raise FindingsError([self._failure(node_id, error)]) from error
        return ShownRows(view_of(node_id), node_id, columns_of(frame), rows, self.limit)

    def _rows(self, node_id: str) -> DataFrame:
        if node_id not in self._frames:
            model = self._compiled.models.get(node_id)
            self._frames[node_id] = self._open(node_id) if model is None else self._analyse(model)
        return self._frames[node_id]

    @property
    def _compiled(self) -> CompiledProject:
        return self.inputs.compiled

    def _analyse(self, model: CompiledModel) -> DataFrame:
        # all are opened before any is registered: what one of them reads may have the view name of another
        frames = [self._rows(read.node_id) for read in model.reads]
        try:
            return self.inputs.analyse(model, frames)
        finally:
            for read in model.reads:  # a later model must not find a view that only this one reads
                self.inputs.readers.session.catalog.dropTempView(read.view)

    def _open(self, node_id: str) -> DataFrame:
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        if has_batches(table):
            try:
                return self.inputs.open_source(static(table), None)
            except FindingsError as error:
                if table.mode == "batch" or NO_BATCH not in str(error.__cause__):
                    raise
        stream = self.inputs.open_source(table, None)
        try:
            return self.samples.rows(table, stream, self.limit)
        except SPARK_ERRORS as error:
            raise FindingsError([self.inputs.unreadable(table, error, NOT_THERE)]) from error

    def _failure(self, node_id: str, error: Exception) -> Finding:
        """The finding for rows that cannot be made, where Spark says in which text."""
        what = f"the rows of `{view_of(node_id)}` cannot be shown"
        record = read_corrupt_record(error)
        if record is not None:
            place = Place(self._declared(node_id))
            tables = tables_with_records(self._compiled, node_id)
            return corrupt_record_finding(record, what, place, self.inputs.readers.secrets, tables)
        return error_finding(
            error,
            code="query-failed",
            what=what,
            place=self._place(node_id, error),
            secrets=self.inputs.readers.secrets,
            fix="fix the cause, or filter out these rows",
        )

    def _place(self, node_id: str, error: Exception) -> Place:
        """The model's line that Spark's error quotes: Spark gives the words and their offset, but not the view."""
        quoted = read_error(error)
        for node in (node_id, *reversed(self._compiled.graph.order)):
            model = self._compiled.models.get(node)
            is_read = node == node_id or node in self._compiled.graph.ancestors(node_id)
            if model is None or not is_read or quoted.offset is None or not quoted.fragment:
                continue
            if model.sql.startswith(quoted.fragment, quoted.offset):
                return self._compiled.locate(node, quoted.offset)
        return Place(self._declared(node_id))

    def _declared(self, node_id: str) -> Location:
        if node_id in self._compiled.models:
            return self._compiled.models[node_id].file.location
        table = self.inputs.table(node_id)
        if table is not None:
            return table.location
        return next(seed.location for seed in self._compiled.project.seeds if view_of(node_id) == seed.name)


def has_batches(table: SourceTable) -> bool:
    """Returns whether `table` is to be read in a batch; only of the project's own class is that known before."""
    if table.mode == "batch" or table.python is None:
        return True
    made = load_name(table.python, table.places.get("class", table.location))
    return made.reader is not DataSource.reader


def static(table: SourceTable) -> SourceTable:
    """Returns `table` as one that Spark reads in a batch: Kafka's batches begin with what is there."""
    options = {name: value for name, value in table.options.items() if (name.lower(), value) not in LIVE}
    return replace(table, mode="batch", options=options)
