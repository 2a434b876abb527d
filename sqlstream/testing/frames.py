"""Builds the DataFrame of a case's model over its given inputs: in-memory streams and static tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import StructField, StructType

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.unit_tests.fixtures import FIELDS, Rows, message_rows
from sqlstream.project.unit_tests.unit_test import BetweenBatches
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.jvm.plans import WATERMARK, read_columns
from sqlstream.spark.reading.corrupt import Counters
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.memory_streams import JavaRows, MemoryInput, RowMaker
from sqlstream.spark.reading.message_formats.parsers import struct_of
from sqlstream.spark.reading.python_code import import_name
from sqlstream.spark.reading.sources import declared_schema
from sqlstream.testing.cases import Case, CaseInput, GivenBatch
from sqlstream.testing.typed_rows import TypedRows, columns_of, nullable

METADATA_TYPE = (
    "struct<file_path: string, file_name: string, file_size: bigint, file_block_start: bigint, "
    "file_block_length: bigint, file_modification_time: timestamp>"
)
"""The metadata column of Spark's file sources (Spark's documentation, "Hidden file metadata")."""

METADATA = "_metadata"


@dataclass(frozen=True)
class StreamInput:
    """A given stream: the rows of all batches in order, and the number of rows in each batch.

    `upstream` are the columns of the node that it replaces. `table` is its table if it is a source. With
    `are_messages`, the rows are messages that the source parses.
    """

    stream: MemoryInput
    schema: StructType
    upstream: StructType
    table: SourceTable | None
    rows: JavaRows
    counts: list[int]
    are_messages: bool = False

    def renewed(self) -> StreamInput:
        """Returns the same rows in a new stream that has emitted none of them."""
        return replace(self, stream=MemoryInput(self.stream.frame.sparkSession, self.schema))


@dataclass(frozen=True)
class _Gap:
    """The columns that a row leaves out."""

    location: Location
    names: Sequence[str]


@dataclass
class CaseFrames:
    """Builds the frame of the model of one case, in the session of `inputs`."""

    case: Case
    inputs: NodeReader
    streams: dict[str, StreamInput] = field(default_factory=dict)
    _frames: dict[str, DataFrame] = field(default_factory=dict)

    def build(self) -> DataFrame:
        """Returns the analyzed rows of the model. Raises: FindingsError."""
        return self._analyse(self.case.model, given=True)

    def check_left_out(self, frame: DataFrame) -> None:
        """Checks that `frame`, the result of `build`, reads no column that a row of an input leaves out.

        Raises: FindingsError with a finding for each input with such a column.
        """
        gaps = {node_id: self._gaps(item) for node_id, item in self.case.inputs.items()}
        suspects = [node_id for node_id, found in gaps.items() if any(gap.names for gap in found)]
        if not suspects:
            return
        inputs = {node_id: self._frames[node_id] for node_id in self.case.inputs if node_id in self._frames}
        read = read_columns(frame, inputs, suspects)
        findings = [self._left_out(self.case.inputs[node_id], gaps[node_id], names) for node_id, names in read.items()]
        if any(findings):
            raise FindingsError([finding for finding in findings if finding is not None])

    def _left_out(self, item: CaseInput, gaps: Sequence[_Gap], read: frozenset[str]) -> Finding | None:
        """Returns the finding if rows of an input lack some of the columns `read` by the model."""
        found = [(gap, [name for name in gap.names if name in read]) for gap in gaps]
        wrong = [(gap, names) for gap, names in found if names]
        if not wrong:
            return None
        left_out = list(dict.fromkeys(name for _, names in wrong for name in names))
        it = "it" if len(left_out) == 1 else "them"
        who, place = "the rows", item.location
        if len(wrong) < len(gaps):
            who, place = f"{len(wrong):,} of {len(gaps):,} rows", wrong[0][0].location
        return Finding(
            "unit-test-column",
            f"{who} of {quoted(item.text)} lack {quoted_list(left_out)}",
            f"{quoted(self.case.model.name)} reads {it}, and would read null",
            f"add {it} to every row; for no value, use `{left_out[0]}: null`",
            place,
        )

    def _gaps(self, item: CaseInput) -> list[_Gap]:
        """Returns the missing columns of each row of an input, or of each query that returns its rows."""
        frame = self._frames.get(item.node_id)
        if frame is None or (item.rows is None and not item.streaming):
            return []
        read = TypedRows(self.inputs.readers.session, f"the input {item.text}")
        gaps = []
        for rows in self._read_rows(item):
            if rows.are_messages:
                continue
            given = [(row.location, columns_of(row)) for row in rows.rows]
            if rows.sql is not None:
                given = [(rows.location, read.given(rows))]
            gaps += [_Gap(at, [name for name in frame.columns if name.casefold() not in names]) for at, names in given]
        return gaps

    def _read_rows(self, item: CaseInput) -> list[Rows]:
        """Returns the rows of an input that this model reads: those before the upgrade if it is the older model."""
        if item.rows is not None:
            return [item.rows]
        steps = self.case.steps
        if BetweenBatches.UPGRADE in steps:
            at = steps.index(BetweenBatches.UPGRADE)
            steps = steps[:at] if self.case.older is None else steps[at + 1 :]
        feeds = (step for step in steps if isinstance(step, GivenBatch))
        return [rows for feed in feeds for node_id, rows in feed.rows if node_id == item.node_id]

    def renew(self) -> DataFrame:
        """Returns the model's rows over new streams that have emitted no rows."""
        for node_id, stream in self.streams.items():
            self.streams[node_id] = fresh = stream.renewed()
            self._frames[node_id] = self._rows_of(fresh)
        return self.build()

    def over(self, rows: Mapping[str, JavaRows]) -> DataFrame:
        """Returns the rows of the model as a batch query over `rows` of the streams (default: no rows).

        Raises: FindingsError.
        """
        before = dict(self._frames)
        maker = RowMaker(self.inputs.readers.session)
        for node_id, stream in self.streams.items():
            # the schema of the stream has the watermark in its metadata
            schema = stream.schema if stream.are_messages else before[node_id].schema
            self._frames[node_id] = self._parsed(maker.frame(rows.get(node_id, []), schema), stream)
        try:
            return self.build()
        finally:
            self._frames = before

    def _analyse(self, model: CompiledModel, *, given: bool) -> DataFrame:
        frames = [self._open(read.node_id, given=given) for read in model.reads]
        return self._without_metadata(model, self.inputs.analyse(model, frames))

    def _without_metadata(self, model: CompiledModel, frame: DataFrame) -> DataFrame:
        """Drops `_metadata` from the result of `select *`, which would not include it for files."""
        known = self.case.compiled.columns.get(model.unique_id)
        if METADATA not in frame.columns or known is None or any(column.name == METADATA for column in known):
            return frame
        return frame.drop(METADATA)

    def _open(self, node_id: str, *, given: bool) -> DataFrame:
        if given and node_id in self.case.inputs:
            if node_id not in self._frames:
                self._frames[node_id] = self._given(self.case.inputs[node_id])
            return self._frames[node_id]
        if node_id in self.case.compiled.models:
            return self._analyse(self.case.compiled.models[node_id], given=given)
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        return self._empty(table)

    def _given(self, item: CaseInput) -> DataFrame:
        table = self.inputs.table(item.node_id)
        if not item.streaming and item.rows is None:
            return self.inputs.open_seed(item.node_id)
        upstream = self._schema(item, table)
        if item.node_id in self.streams:  # the models before and after an upgrade share streams
            return self._rows_of(replace(self.streams[item.node_id], upstream=upstream, table=table))
        session, rows = self.inputs.readers.session, self._all_rows(item)
        are_messages = table is not None and any(batch.are_messages for batch in rows)
        if table is not None and are_messages:
            rows, schema = message_rows(rows, table), struct_of(FIELDS)
        else:
            schema, upstream = self._with_metadata(upstream, table, rows), _with_times(upstream, rows)
        java_rows, counts = TypedRows(session, f"the input {item.text}").read(rows, schema)
        stream = MemoryInput(session, nullable(schema))
        made = StreamInput(stream, nullable(schema), upstream, table, java_rows, counts, are_messages)
        if not item.streaming:
            return self._parsed(RowMaker(session).frame(java_rows, made.schema), made)
        self.streams[item.node_id] = made
        return self._rows_of(made)

    def _rows_of(self, stream: StreamInput) -> DataFrame:
        """Returns the rows that the model sees of a given stream."""
        return _watermarked(self._parsed(stream.stream.frame, stream), stream.upstream, stream.table)

    def _parsed(self, frame: DataFrame, stream: StreamInput) -> DataFrame:
        """Returns `frame`, which has the rows of `stream`, as its source returns them: messages are parsed."""
        if not stream.are_messages or stream.table is None:
            return frame
        return self.inputs.readers.parse_messages(frame, stream.table, Counters())

    def _all_rows(self, item: CaseInput) -> list[Rows]:
        if item.rows is not None:
            return [item.rows]
        return [rows for feed in self.case.feeds for node_id, rows in feed.rows if node_id == item.node_id]

    def _schema(self, item: CaseInput, table: SourceTable | None) -> StructType:
        if table is not None and table.stored is not None and table.spark_schema is None:
            stored = self._analyse(self.case.compiled.writer_of(table), given=False).schema
            return StructType(list(map(_plain, stored)))
        if table is not None:
            return self._declared(table)
        if item.node_id in self.case.compiled.models:
            return self._analyse(self.case.compiled.models[item.node_id], given=False).schema
        return self.inputs.open_seed(item.node_id).schema

    def _declared(self, table: SourceTable) -> StructType:
        if table.python is not None and table.spark_schema is None:
            schema = _python_schema(table, table.python)
            found = SparkType.fromDDL(schema) if isinstance(schema, str) else schema
            return found if isinstance(found, StructType) else StructType()
        schema = declared_schema(table)
        if schema is None:
            what = f"the columns of source `{table.full_name}` are unknown"
            why = "a unit test cannot read them, because it runs without the source"
            fix = f"declare `columns:`; `sqlstream source schema {table.full_name}` prints them"
            raise FindingsError([Finding("unit-test-input", what, why, fix, table.location)])
        return schema

    def _with_metadata(self, schema: StructType, table: SourceTable | None, rows: Iterable[Rows]) -> StructType:
        given = any(row.entry(METADATA) for batch in rows for row in batch.rows)
        if table is None or not given or METADATA in schema.names:
            return schema
        return StructType([*schema.fields, StructField(METADATA, SparkType.fromDDL(METADATA_TYPE))])

    def _empty(self, table: SourceTable) -> DataFrame:
        """Returns an empty source upstream of a given model, to find the types of that model's columns."""
        schema = nullable(self._declared(table))
        if table.mode == "batch":
            return self.inputs.readers.session.createDataFrame([], schema)
        return _watermarked(MemoryInput(self.inputs.readers.session, schema).frame, schema, table)


def _python_schema(table: SourceTable, reference: str) -> object:
    """Returns the schema of a Python source. Raises: FindingsError if its code raises an error."""
    location = table.locations.get("class", table.location)
    made = import_name(reference, location)
    try:
        return made(dict(table.options)).schema()
    except Exception as error:
        what = f"the source `{table.full_name}` does not return its columns"
        why = f"its code reports: {type(error).__name__}: {error}"
        fix = "declare `columns:`, or fix the class"
        raise FindingsError([Finding("unit-test-input", what, why, fix, location)]) from error


def _with_times(upstream: StructType, rows: Sequence[Rows]) -> StructType:
    """Returns the columns of a node, with watermarks only on columns that rows give. A test needs the watermark column
    only if the model reads it.
    """
    written = [row for batch in rows for row in batch.rows]
    given = {entry.key.casefold() for row in written for entry in row.entries}
    if not written or any(batch.sql is not None for batch in rows):
        return upstream
    return StructType([each if each.name.casefold() in given else _plain(each) for each in upstream])


def _plain(field: StructField) -> StructField:
    metadata = {key: value for key, value in field.metadata.items() if key != WATERMARK}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _watermarked(frame: DataFrame, upstream: StructType, table: SourceTable | None) -> DataFrame:
    """Returns the frame with the watermark of the source, or with those of the `upstream` model's columns."""
    if table is not None and table.watermark is not None:
        return frame.withWatermark(table.watermark.column, table.watermark.delay)
    for each in upstream:
        if WATERMARK in each.metadata:
            frame = frame.withWatermark(each.name, f"{each.metadata[WATERMARK]} milliseconds")
    return frame
