"""Opens the inputs of a model as temp views, and analyzes its SQL or calls its Python; Spark's errors become findings
on the user's lines.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import seed_id
from sqlstream.compiler.origins import ORIGIN, has_origin, origin_sql
from sqlstream.compiler.python_models import FUNCTION, find_function, reference_calls
from sqlstream.compiler.rewrite.deduplicate import key_columns
from sqlstream.compiler.rules.contracts import contract_findings
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.statement import command_problem, command_word
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.types.data_types import Struct, read_json_schema
from sqlstream.project.values import SourceTable
from sqlstream.python_syntax import parse_module
from sqlstream.spark.jvm.connect import with_kept_plan
from sqlstream.spark.jvm.errors import error_finding, host_fix, read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, analysed, command_in, is_connect
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.plans import WATERMARK, AggregateCall, is_stateful, streaming_python_aggregates
from sqlstream.spark.reading.data_tests import marked_rows, tested_rows
from sqlstream.spark.reading.python_code import pickle_by_value
from sqlstream.spark.reading.seed_frames import open_seed
from sqlstream.spark.reading.sources import Readers, SchemaError, quoted, with_origin
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import SourceUse
from sqlstream.state.runs.progress import TESTED

ROWS_FIX = "deduplicate by columns of the model that Spark can compare"

TEST_FIX = "use a condition on the columns of the model"

REFERENCE_ARGUMENT = "reference"
"""The keyword argument with the number of a reference, added to the author's calls."""


@dataclass(frozen=True)
class NodeReader:
    """Opens the sources and seeds of a project, and analyzes its models, in one session.

    Each seed is opened once for the session, which takes two Spark jobs.
    """

    compiled: CompiledProject
    readers: Readers
    _seeds: dict[str, DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)
    _counted: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

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
            is_static = table.mode == "batch"
            return analysed(self.readers.open_table(table) if is_static else self.readers.open_stream(table, name))
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
                self._seeds[seed.name] = analysed(open_seed(seed, self.readers))
            return self._seeds[seed.name]
        except SPARK_ERRORS as error:
            what = f"seed `{seed.name}` cannot be read"
            raise FindingsError([self._finding(error, "source-unreadable", what, seed.location)]) from error

    def analyse(self, model: CompiledModel, frames: Sequence[DataFrame]) -> DataFrame:
        """Returns the analyzed DataFrame of `model`; `frames` are those of its `reads`, and become its views.

        Raises: FindingsError, at the location in the model that Spark reports.
        """
        rows = self._untested(model, frames)
        return self._tested(model, rows, self._counter(model, rows))

    def analyse_marked(self, model: CompiledModel, frames: Sequence[DataFrame]) -> tuple[DataFrame, DataFrame]:
        """Returns what `analyse` returns, and the same rows with those that data tests quarantine, as `marked_rows`
        does. Only one of the two can run, because both have the counter. Raises: FindingsError.
        """
        rows = self._untested(model, frames)
        counter = self._counter(model, rows)
        tested = self._tested(model, rows.drop(ORIGIN), counter)
        return tested, marked_rows(rows, model.name, model.file.row_tests, counter)

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Forgets the counters of the frames that the body has made, if it fails."""
        counted, counters = set(self._counted), len(self.readers.counters)
        try:
            yield
        except BaseException:
            self._counted.intersection_update(counted)
            del self.readers.counters[counters:]
            raise

    def _untested(self, model: CompiledModel, frames: Sequence[DataFrame]) -> DataFrame:
        """Returns the analyzed DataFrame of `model`, before its data tests. Raises: FindingsError."""
        frame = self._run(model, frames) if model.file.is_python else self._read(model, frames)
        findings = [self._stream_aggregate(model, call) for call in streaming_python_aggregates(frame)]
        if findings:
            raise FindingsError(findings)
        return self._deduplicated(model, frame)

    def with_contract(self, model: CompiledModel, frame: DataFrame) -> DataFrame:
        """Returns `frame`, the analyzed `model`, if it has the columns of its contract. Previews and unit tests may
        have others, such as `_metadata` or types of a sample. Raises: FindingsError.
        """
        found = read_json_schema(frame.drop(ORIGIN).schema.json()) if model.has_contract else None
        if isinstance(found, Struct):
            columns = [Column(field.name, field.type) for field in found.fields]
            findings = contract_findings(self.compiled, model, columns)
            if findings:
                raise FindingsError(findings)
        return frame

    def drop_views(self, model: CompiledModel) -> None:
        """Removes the views of `model`, so that other models cannot read views that they do not declare."""
        for read in model.reads:
            self.readers.session.catalog.dropTempView(read.view)

    def _read(self, model: CompiledModel, frames: Sequence[DataFrame]) -> DataFrame:
        for read, frame in zip(model.reads, frames, strict=True):
            frame.createOrReplaceTempView(quoted(read.view))
        try:
            # session.sql() would run a command, such as DROP TABLE, at once
            command = self._command(model.sql)
            if command is not None:
                raise FindingsError([command_problem(model.name, command).at(Place(model.file.location))])
            frame = self.readers.session.sql(model.sql)
            return with_kept_plan(frame) if is_connect(self.readers.session) else frame
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
            return analysed(_drop_duplicates(frame, model.config.deduplicate))
        except SPARK_ERRORS as error:
            what = f"Spark cannot deduplicate the rows of `{model.name}`"
            location = model.location_of("deduplicate")
            raise FindingsError([self._finding(error, "sql-analysis", what, location, ROWS_FIX)]) from error

    def _counter(self, model: CompiledModel, frame: DataFrame) -> str | Observation | None:
        """Returns what counts the violations of the data tests of `model`, None if something else counts them."""
        # a model that the query reads twice has the same rows
        if not model.file.row_tests or not self.readers.counts or model.name in self._counted:
            return None
        self._counted.add(model.name)
        name = f"{TESTED}{model.name}"
        if frame.isStreaming:
            return name
        counter = Observation(name)
        self.readers.counters.append(counter)
        return counter

    def _tested(self, model: CompiledModel, frame: DataFrame, counter: str | Observation | None) -> DataFrame:
        tests = model.file.row_tests
        if not tests:
            return frame
        try:
            return analysed(tested_rows(frame, model.name, tests, counter))
        except SPARK_ERRORS:
            self._try_each(model, frame)
            raise

    def _try_each(self, model: CompiledModel, frame: DataFrame) -> None:
        """Raises: FindingsError for the first data test that Spark cannot evaluate."""
        for test in model.file.row_tests:
            try:
                analysed(tested_rows(frame, model.name, (test,), TESTED))
            except SPARK_ERRORS as error:
                what = f"Spark cannot evaluate the data test `{test.name}` of `{model.name}`"
                raise FindingsError([self._finding(error, "data-test", what, test.location, TEST_FIX)]) from error

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
    # Spark refuses dropDuplicatesWithinWatermark in a batch
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
    if table.spark_schema is not None and any(word in condition for word in ("PARSE", "SCHEMA", "DATATYPE", "DECIMAL")):
        return table.spark_schema.location
    if "path" in table.locations and host_fix(error) is not None:
        return table.locations["path"]
    for key, words in (("path", ("PATH",)), ("format", ("DATA_SOURCE",))):
        if key in table.locations and any(word in condition for word in words):
            return table.locations[key]
    return table.location


class ModelInputs:
    """The first parameter of a Python model: its inputs as DataFrames, and the project's variables."""

    def __init__(self, frames: Sequence[DataFrame], variables: Mapping[str, object]) -> None:
        self._frames = frames
        self._variables = variables

    def ref(self, name: str, *, reference: int, **version: object) -> DataFrame:  # noqa: ARG002 - the number identifies it
        """Returns the rows of the model or seed `name`."""
        return self._frames[reference]

    def source(self, source: str, table: str, *, reference: int) -> DataFrame:  # noqa: ARG002 - see `ref`
        """Returns the rows of a source table."""
        return self._frames[reference]

    def var(self, name: str, default: object = None) -> object:
        """Returns the value of a variable, or `default` if it is not set."""
        return self._variables.get(name, default)

    def config(self, **settings: object) -> None:
        """Does nothing: the compiler has read the model's configuration before."""


def run_python_model(
    model: CompiledModel, inputs: ModelInputs, session: SparkSession, root: Path, secrets: Secrets
) -> DataFrame:
    """Returns the DataFrame that the function of `model` returns for its `inputs`, in `session`.

    Its module runs again each time, under a name that cannot be imported, so that Spark sends its classes and
    functions to the workers. Raises: FindingsError, at the failed line of the model.
    """
    path = str(root / model.file.path)
    tree = parse_module(model.file.text, path)
    function = find_function(tree)
    # the number tells two calls with the same name apart: each has its own reader
    for number, call in enumerate(reference_calls(function) if function else ()):
        call.keywords.append(ast.keyword(REFERENCE_ARGUMENT, ast.Constant(number)))
    module: dict[str, object] = {"__name__": f"sqlstream_model_{model.name}", "__file__": path}
    try:
        exec(compile(ast.fix_missing_locations(tree), path, "exec"), module)  # noqa: S102 - it is the user's own model
        pickle_by_value()
        frame = module[FUNCTION](inputs, session)  # type: ignore[operator]
        if isinstance(frame, DataFrame):
            analysed(frame)
    except (Exception, SystemExit) as error:
        raise FindingsError([_failure(model, error, path, secrets)]) from error
    if not isinstance(frame, DataFrame):
        raise FindingsError([_not_a_frame(model, frame, function.lineno if function else 1)])
    return frame


def _failure(model: CompiledModel, error: BaseException, path: str, secrets: Secrets) -> Finding:
    # the last of them is the line of the model that called what failed
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = Place(Location(model.file.path, (lines[-1] if lines else None) or 1))
    if isinstance(error, SPARK_ERRORS):
        what = f"Spark rejects what `{model.name}` does here"
        return error_finding(error, code="python-failed", what=what, place=place, secrets=secrets, fix="fix the model")
    return Finding(
        "python-failed",
        f"the Python code of `{model.name}` fails here",
        secrets.redact(f"{type(error).__name__}: {' '.join(str(error).split()) or 'without a message'}"),
        "fix the model",
        place.location,
    )


def _not_a_frame(model: CompiledModel, given: object, line: int) -> Finding:
    return Finding(
        "python-failed",
        f"`{model.name}` does not return a DataFrame",
        f"its function returns {'nothing' if given is None else type(given).__name__}",
        "return a DataFrame with the rows of the model",
        Location(model.file.path, line),
    )


class _NotCarriedError(Exception):
    """A query cannot carry the places of its rows, although its SQL looks as if it could."""


@dataclass(frozen=True)
class ViewBuilder:
    """Registers views for one query, in its own session.

    With source evolution, each path from the query to a stream needs a separate reader with a stable name. A temp view
    keeps the plan that it was created from. Therefore each view is registered again, with new readers, just before
    Spark analyzes a text that reads it. `uses` are the readers; with `names_sources`, Spark gets their names. `carried`
    is the SQL that carries the place of each row in its source, by the unique ids of models.
    """

    inputs: NodeReader
    uses: Sequence[SourceUse]
    names_sources: bool
    carried: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def build(self, model: CompiledModel, above: tuple[str, ...] = ()) -> DataFrame:
        """Returns the analyzed DataFrame of `model`; `above` are the views on the path from the query to it.

        Raises: FindingsError, at the location in the model that Spark reports.
        """
        frame = self.inputs.analyse(self._carrying(model), self._open_all(model, above))
        return self.inputs.with_contract(model, frame)

    def build_query(self, model: CompiledModel) -> tuple[DataFrame, DataFrame | None]:
        """Returns the analyzed DataFrame of `model`, whose query it is. If data tests quarantine rows, also one that
        has them, see `marked_rows`. Raises: FindingsError.
        """
        if not model.quarantine_tests:
            return self.build(model), None
        carried = origin_sql(self.inputs.compiled, model)
        if carried:
            with suppress(FindingsError, _NotCarriedError, *SPARK_ERRORS), self.inputs.trying():
                return replace(self, carried=carried).build_marked(model)
        return self.build_marked(model)

    def build_marked(self, model: CompiledModel) -> tuple[DataFrame, DataFrame]:
        """Returns the analyzed DataFrame of `model`, and one with the rows that data tests quarantine. Raises:
        FindingsError; _NotCarriedError for a query with state that would carry `ORIGIN`, or would have it twice.
        """
        frame, marked = self.inputs.analyse_marked(self._carrying(model), self._open_all(model, ()))
        if self.carried and (is_stateful(marked) or marked.columns.count(ORIGIN) != 1):
            raise _NotCarriedError
        return self.inputs.with_contract(model, frame), marked

    def _carrying(self, model: CompiledModel) -> CompiledModel:
        sql = self.carried.get(model.unique_id)
        return model if sql is None else replace(model, sql=sql)

    def _open_all(self, model: CompiledModel, above: tuple[str, ...]) -> list[DataFrame]:
        # open all inputs before the first is registered: views of their own inputs can have the same names
        return [self._open(read.node_id, (*above, read.view)) for read in model.reads]

    def _open(self, node_id: str, path: tuple[str, ...]) -> DataFrame:
        if node_id in self.inputs.compiled.models:
            return self.build(self.inputs.compiled.models[node_id], path)
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        has_name = self.names_sources and table.mode == "stream"
        frame = self.inputs.open_source(table, self._name(path) if has_name else None)
        return with_origin(frame, table) if self.carried and has_origin(table) else frame

    def _name(self, path: tuple[str, ...]) -> str:
        return next(use.name for use in self.uses if use.via == "/".join(path))
