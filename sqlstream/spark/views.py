"""The temp views of one query: every source, seed and model below it, each analysed where its own errors belong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import seed_id, source_id
from sqlstream.compiler.statement import command_problem
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.values import Seed, SourceTable
from sqlstream.spark.jvm import SPARK_ERRORS, command_in
from sqlstream.spark.seeds import open_seed
from sqlstream.spark.sources import Readers, SchemaError, quoted
from sqlstream.spark.spark_errors import at, error_finding, read_error
from sqlstream.state.ledger import SourceUse


@dataclass(frozen=True)
class ViewBuilder:
    """Registers views for one query, in its own session.

    Under source evolution each way from the query to a stream needs a reader of its own, with its own stable name. A
    temp view keeps the plan it was made from, so every view is registered anew, over fresh readers, just before each
    text that reads it is analysed. A seed is no stream: it is opened, which takes Spark two jobs, once for the query.
    `uses` are the readers; `names_sources` says whether Spark is told their names.
    """

    compiled: CompiledProject
    readers: Readers
    uses: Sequence[SourceUse]
    names_sources: bool
    _seeds: dict[str, DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    def build(self, model: CompiledModel, above: tuple[str, ...] = ()) -> DataFrame:
        """Returns the analysed rows of `model`, to which the views `above` lead from the query.

        Raises: FindingsError, with the place in the model that Spark named.
        """
        # all are opened before any is registered: what one of them reads may have the view name of another
        opened = [(read.view, self._open(read.node_id, (*above, read.view))) for read in model.reads]
        for view, frame in opened:
            frame.createOrReplaceTempView(quoted(view))
        try:
            command = command_in(self.readers.session, model.sql)
            if command is not None:
                raise FindingsError([command_problem(model.name, command).at(at(model.file.location))])
            return self.readers.session.sql(model.sql)
        except SPARK_ERRORS as error:
            raise FindingsError([self._model_finding(model, error)]) from error

    def _open(self, node_id: str, way: tuple[str, ...]) -> DataFrame:
        if node_id in self.compiled.models:
            return self.build(self.compiled.models[node_id], way)
        project = self.compiled.project
        for table in project.sources:
            if node_id == source_id(project.name, table):
                return self._source(table, way)
        seed = next(seed for seed in project.seeds if node_id == seed_id(project.name, seed.name))
        return self._seed(seed)

    def _source(self, table: SourceTable, way: tuple[str, ...]) -> DataFrame:
        what = f"source `{table.full_name}` cannot be read"
        try:
            if table.mode == "batch":
                return self.readers.open_table(table)
            name = next(use.name for use in self.uses if use.via == "/".join(way))
            return self.readers.open_stream(table, name if self.names_sources else None)
        except SPARK_ERRORS as error:
            raise FindingsError([self._finding(error, "source-unreadable", what, _blame(table, error))]) from error
        except SchemaError as error:
            place = table.places.get("schema_file", table.location)
            raise FindingsError([self._finding(error, "source-unreadable", what, place)]) from error

    def _seed(self, seed: Seed) -> DataFrame:
        try:
            if seed.name not in self._seeds:
                self._seeds[seed.name] = open_seed(seed, self.readers)
            return self._seeds[seed.name]
        except SPARK_ERRORS as error:
            what = f"seed `{seed.name}` cannot be read"
            raise FindingsError([self._finding(error, "source-unreadable", what, seed.location)]) from error

    def _model_finding(self, model: CompiledModel, error: Exception) -> Finding:
        said = read_error(error, model.sql)
        place = at(model.file.location) if said.offset is None else self.compiled.locate(model.unique_id, said.offset)
        what = f"Spark cannot read the SQL of `{model.name}`"
        if said.condition == "PARSE_SYNTAX_ERROR":
            code = "sql-syntax"
        else:
            code, what = "sql-analysis", f"Spark refuses the SQL of `{model.name}`"
        return error_finding(error, code=code, what=what, place=place, secrets=self.readers.secrets, sql=model.sql)

    def _finding(self, error: Exception, code: str, what: str, location: Location) -> Finding:
        return error_finding(
            error,
            code=code,
            what=what,
            place=Place(location),
            secrets=self.readers.secrets,
            fix=_source_fix(error),
        )


def _source_fix(error: Exception) -> str:
    if "Failed to find the data source" in str(error):
        return "correct the format, or add the package that has it to the target's packages:"
    return "correct the source's declaration"


def _blame(table: SourceTable, error: Exception) -> Location:
    """The key of the source's YAML that Spark's error is about, as far as its condition tells."""
    condition = read_error(error).condition or ""
    if table.schema is not None and any(word in condition for word in ("PARSE", "SCHEMA", "DATATYPE", "DECIMAL")):
        return table.schema.location
    for key, words in (("path", ("PATH",)), ("format", ("DATA_SOURCE",))):
        if key in table.places and any(word in condition for word in words):
            return table.places[key]
    return table.location
