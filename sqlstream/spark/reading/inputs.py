"""Opens the inputs of a model and analyzes its SQL; Spark's errors become findings on the user's lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import seed_id
from sqlstream.compiler.rewrite.deduplicate import key_columns
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.statement import command_problem, command_word
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, command_in
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.reading.python_models import ModelInputs, run_python_model
from sqlstream.spark.reading.seeds import open_seed
from sqlstream.spark.reading.sources import Readers, SchemaError, quoted
from sqlstream.spark.running.endpoints import host_fix
from sqlstream.spark.running.plans import WATERMARK, AggregateCall, streaming_python_aggregates
from sqlstream.spark.spark_errors import error_finding, read_error

ROWS_FIX = "deduplicate by columns of the model that Spark can compare"


@dataclass(frozen=True)
class NodeReader:
    """Opens the sources and seeds of a project, and analyzes its models, in one session.

    Each seed is opened once for the session, which takes two Spark jobs.
    """

    compiled: CompiledProject
    readers: Readers
    _seeds: dict[str, DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    def table(self, node_id: str) -> SourceTable | None:
        """Returns the source table or stored output with the id `node_id`, None for the id of another node."""
        return self.compiled.tables.get(node_id)

    def open_source(self, table: SourceTable, name: str | None) -> DataFrame:
        """Returns a new reader of `table`; `name` identifies it in the checkpoint.

        Raises: FindingsError, also for secrets that are not set.
        """
        missing = self.readers.missing_secrets(table)
        if missing:
            raise FindingsError(missing)
        try:
            return self.readers.open_table(table) if table.mode == "batch" else self.readers.open_stream(table, name)
        except (*SPARK_ERRORS, SchemaError) as error:
            raise FindingsError([self.unreadable(table, error)]) from error

    def unreadable(self, table: SourceTable, error: Exception, fix: str | None = None) -> Finding:
        """Returns the finding that `table` cannot be read because of `error`, at the YAML key that causes it."""
        what = f"{(table.corrupt_of or table).described} cannot be read"
        return self._finding(error, "source-unreadable", what, _location_of(table, error), fix)

    def open_seed(self, node_id: str) -> DataFrame:
        """Returns the rows of the seed with the id `node_id`. Raises: FindingsError."""
        project = self.compiled.project
        seed = next(seed for seed in project.seeds if node_id == seed_id(project.name, seed.name))
        try:
            if seed.name not in self._seeds:
                self._seeds[seed.name] = open_seed(seed, self.readers)
            return self._seeds[seed.name]
        except SPARK_ERRORS as error:
            what = f"seed `{seed.name}` cannot be read"
            raise FindingsError([self._finding(error, "source-unreadable", what, seed.location)]) from error

    def analyse(self, model: CompiledModel, frames: Sequence[DataFrame]) -> DataFrame:
        """Returns the analyzed DataFrame of `model`; `frames` are those of its `reads`, and become its views.

        Raises: FindingsError, at the location in the model that Spark reports.
        """
        frame = self._run(model, frames) if model.file.is_python else self._read(model, frames)
        findings = [self._stream_aggregate(model, call) for call in streaming_python_aggregates(frame)]
        if findings:
            raise FindingsError(findings)
        return self._deduplicated(model, frame)

    def drop_views(self, model: CompiledModel) -> None:
        """Removes the views of `model`, so that other models cannot read views that they do not declare."""
        for read in model.reads:
            self.readers.session.catalog.dropTempView(read.view)

    def _read(self, model: CompiledModel, frames: Sequence[DataFrame]) -> DataFrame:
        for read, frame in zip(model.reads, frames, strict=True):
            frame.createOrReplaceTempView(quoted(read.view))
        try:
            command = self._command(model.sql)
            if command is not None:
                raise FindingsError([command_problem(model.name, command).at(Place(model.file.location))])
            return self.readers.session.sql(model.sql)
        except SPARK_ERRORS as error:
            raise FindingsError([self._model_finding(model, error)]) from error

    def _command(self, sql: str) -> str | None:
        """Returns the command in `sql`, None if it is a query."""

        def by_keyword() -> str | None:
            word = command_word(read_sql(sql))
            return word.key if word else None

        session = self.readers.session
        return call_internal(session, "parser", lambda: command_in(session, sql), by_keyword)

    def _run(self, model: CompiledModel, frames: Sequence[DataFrame]) -> DataFrame:
        project, readers = self.compiled.project, self.readers
        inputs = ModelInputs(frames, project.vars)
        return run_python_model(model, inputs, readers.session, project.root, readers.secrets)

    def _stream_aggregate(self, model: CompiledModel, call: AggregateCall) -> Finding:
        has_place = call.offset is not None and not model.file.is_python
        place = self.compiled.locate(model.unique_id, call.offset or 0) if has_place else Place(model.file.location)
        return Finding(
            "misplaced-function",
            f"the Python aggregate `{call.function}` cannot be used on a stream",
            "Spark aggregates a stream batch by batch, but a Python aggregate needs all rows of a group at once",
            "use a Spark aggregate, or a @udf that takes the list of values from collect_list(...)",
            place.location,
            calls=place.calls,
        )

    def _deduplicated(self, model: CompiledModel, frame: DataFrame) -> DataFrame:
        try:
            return _drop_duplicates(frame, model.config.deduplicate)
        except SPARK_ERRORS as error:
            what = f"Spark cannot deduplicate the rows of `{model.name}`"
            location = model.place_of("deduplicate")
            raise FindingsError([self._finding(error, "sql-analysis", what, location, ROWS_FIX)]) from error

    def _model_finding(self, model: CompiledModel, error: Exception) -> Finding:
        read = read_error(error, model.sql)
        place = (
            Place(model.file.location) if read.offset is None else self.compiled.locate(model.unique_id, read.offset)
        )
        is_syntax = read.condition == "PARSE_SYNTAX_ERROR"
        return error_finding(
            error,
            code="sql-syntax" if is_syntax else "sql-analysis",
            what=f"Spark {'cannot parse' if is_syntax else 'rejects'} the SQL of `{model.name}`",
            place=place,
            secrets=self.readers.secrets,
            sql=model.sql,
        )

    def _finding(self, error: Exception, code: str, what: str, location: Location, fix: str | None = None) -> Finding:
        return error_finding(
            error,
            code=code,
            what=what,
            place=Place(location),
            secrets=self.readers.secrets,
            fix=host_fix(error) or fix or _source_fix(error),
        )


def _drop_duplicates(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns one row of `frame` for each combination of values in `columns`; all rows if `columns` is empty.

    In a stream with a watermark, Spark remembers a row until the watermark passes its time plus the delay; without a
    watermark, forever. Raises: AnalysisException.
    """
    if not columns:
        return frame
    keys = list(key_columns(columns))
    if frame.isStreaming and any(WATERMARK in field.metadata for field in frame.schema.fields):
        return frame.dropDuplicatesWithinWatermark(keys)
    return frame.dropDuplicates(keys)


def _source_fix(error: Exception) -> str:
    if read_error(error).condition == "DATA_SOURCE_NOT_FOUND":
        return "fix the format, or add its package to packages: of the target"
    return "fix the declaration of the source"


def _location_of(table: SourceTable, error: Exception) -> Location:
    """Returns the location of the YAML key that causes Spark's error, according to its condition."""
    condition = "SCHEMA" if isinstance(error, SchemaError) else read_error(error).condition or ""
    if table.schema is not None and any(word in condition for word in ("PARSE", "SCHEMA", "DATATYPE", "DECIMAL")):
        return table.schema.location
    if "path" in table.places and host_fix(error) is not None:
        return table.places["path"]
    for key, words in (("path", ("PATH",)), ("format", ("DATA_SOURCE",))):
        if key in table.places and any(word in condition for word in words):
            return table.places[key]
    return table.location
