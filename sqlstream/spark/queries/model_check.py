"""Checks models with Spark but without data: analyzes each once, parents first, and checks each query, unstarted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import model_id
from sqlstream.compiler.spark_findings import SparkRefusal
from sqlstream.compiler.sql.sql_text import view_name
from sqlstream.errors import FindingsError
from sqlstream.location import Place
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime, child_session
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers, quoted
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.outputs import check_output
from sqlstream.state.spark_settings import SOURCE_EVOLUTION


def check_with_spark(
    compiled: CompiledProject,
    models: Sequence[CompiledModel],
    runtime: SparkRuntime,
    secrets: Secrets,
) -> Iterator[list[SparkRefusal]]:
    """Yields what Spark refuses in each of `models` and everything upstream, parents first, without starting or writing
    anything: for a model also its sources.

    Models downstream of a refused node are not checked, because Spark would refuse them for the same reason. Raises:
    FindingsError if Spark's JVM has died.
    """
    session = child_session(runtime, {SOURCE_EVOLUTION: str(runtime.names_sources).lower()})
    register_functions(session, compiled.project.functions)
    readers = Readers(session, secrets, compiled.project.root, counts=False)
    checker = _Checker(NodeReader(compiled, readers), runtime.names_sources)
    selected = {model.unique_id for model in models}
    needed = selected.union(*(compiled.graph.ancestors(node) for node in selected))
    for node in compiled.graph.order:
        if node in needed and node in compiled.models:
            known = len(checker.refusals)
            _check(compiled.models[node], checker, as_query=node in selected)
            yield checker.refusals[known:]


def _check(model: CompiledModel, checker: _Checker, *, as_query: bool) -> None:
    """Raises: FindingsError if Spark cannot answer, for example because its JVM has died."""
    try:
        checker.check(model, as_query=as_query)
    except SPARK_ERRORS as error:
        finding = error_finding(
            error,
            code="sql-analysis",
            what=f"Spark cannot check `{model.name}`",
            place=Place(model.file.location),
            secrets=checker.inputs.readers.secrets,
            fix="increase spark.driver.memory in the target, and run the command again",
        )
        raise FindingsError([finding]) from error


@dataclass(frozen=True)
class _Checker:
    """Checks models one by one. `frames` contains a DataFrame for each node so far, None if Spark refuses it."""

    inputs: NodeReader
    names_sources: bool
    refusals: list[SparkRefusal] = field(default_factory=list)
    frames: dict[str, DataFrame | None] = field(default_factory=dict)

    def check(self, model: CompiledModel, *, as_query: bool) -> None:
        """Analyzes `model` after its parents; with `as_query`, also checks its query."""
        frames = [self._rows(read.node_id) for read in model.reads]
        known = [frame for frame in frames if frame is not None]
        frame = None
        if len(known) == len(frames):
            frame = self._try(
                model.unique_id, lambda: self.inputs.with_contract(model, self.inputs.analyse(model, known))
            )
            self.inputs.drop_views(model)
        self.frames[model.unique_id] = frame
        if frame is not None and as_query:
            self._check_query(model, frame)

    def _check_query(self, model: CompiledModel, frame: DataFrame) -> None:
        output, secrets = model.output, self.inputs.readers.secrets
        if output is None:
            return
        try:
            check_output(model, output, frame, secrets)
        except FindingsError as error:
            self.refusals.extend(SparkRefusal(model.unique_id, True, finding) for finding in error.findings)

    def _rows(self, node_id: str) -> DataFrame | None:
        if node_id not in self.frames:
            self.frames[node_id] = self._try(node_id, lambda: self._open(node_id))
        return self.frames[node_id]

    def _open(self, node_id: str) -> DataFrame:
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        if table.stored is not None:
            table = self._with_columns(table)
        # without a checkpoint, names do not matter: all models that read the source share one reader
        has_name = self.names_sources and table.mode == "stream"
        return self.inputs.open_source(table, view_name((table.source, table.name)) if has_name else None)

    def _with_columns(self, table: SourceTable) -> SourceTable:
        """Returns a stored output with the columns that Spark finds in its model, which is checked before it.

        Raises: FindingsError if Spark refuses the model.
        """
        project = self.inputs.compiled.project
        frame = self._rows(model_id(project.name, table.name))
        if frame is None:
            raise FindingsError([])  # the model has the findings
        ddl = ", ".join(f"{quoted(field.name)} {type_text(field.dataType)}" for field in frame.schema)
        return table.model_copy(update={"spark_schema": Schema(table.location, ddl=ddl)})

    def _try(self, node_id: str, call: Callable[[], DataFrame]) -> DataFrame | None:
        try:
            return call()
        except FindingsError as error:
            self.refusals.extend(SparkRefusal(node_id, False, finding) for finding in error.findings)
            return None
