"""The temp views of one query: every source, seed and model below it, each analysed where its own errors belong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.values import Seed, SourceTable
from sqlstream.spark.jvm import command_in
from sqlstream.spark.sources import Readers, SchemaError, quoted
from sqlstream.spark.spark_errors import at, error_finding, read_error
from sqlstream.state.ledger import SourceUse


@dataclass
class ViewBuilder:
    """Registers views for one query, in its own session, and counts the readers it makes.

    Under source evolution each path from the query to a stream needs a reader of its own, with its own stable name. A
    temp view keeps the plan it was made from, so every view is registered anew, over fresh readers, just before each
    text that reads it is analysed. `uses` then lists the readers in order of first appearance.
    """

    compiled: CompiledProject
    readers: Readers
    names_sources: bool
    uses: list[SourceUse] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)

    def build(self, model: CompiledModel) -> DataFrame:
        """Returns the analysed rows of `model`. Raises: FindingsError, with the place in the model that Spark named."""
        for read in model.reads:
            self._open(read.node_id).createOrReplaceTempView(quoted(read.view))
        try:
            command = command_in(self.readers.session, model.sql)
            if command is not None:
                raise FindingsError([_no_query(model, command)])
            return self.readers.session.sql(model.sql)
        except PySparkException as error:
            raise FindingsError([self._model_finding(model, error)]) from error

    def _open(self, node_id: str) -> DataFrame:
        if node_id in self.compiled.models:
            return self.build(self.compiled.models[node_id])
        project = self.compiled.project
        for table in project.sources:
            if node_id == f"source.{project.name}.{table.source}.{table.name}":
                return self._source(table)
        seed = next(seed for seed in project.seeds if node_id == f"seed.{project.name}.{seed.name}")
        return self._seed(seed)

    def _source(self, table: SourceTable) -> DataFrame:
        what = f"source `{table.full_name}` cannot be read"
        try:
            if table.mode == "batch":
                return self.readers.open_table(table)
            name = self._reader_name(table)
            return self.readers.open_stream(table, name if self.names_sources else None)
        except (PySparkException, Py4JJavaError) as error:
            raise FindingsError([self._finding(error, "source-unreadable", what, _blame(table, error))]) from error
        except SchemaError as error:
            place = table.places.get("schema_file", table.location)
            raise FindingsError([self._finding(error, "source-unreadable", what, place)]) from error

    def _seed(self, seed: Seed) -> DataFrame:
        try:
            return self.readers.open_seed(seed)
        except PySparkException as error:
            what = f"seed `{seed.name}` cannot be read"
            raise FindingsError([self._finding(error, "source-unreadable", what, seed.location)]) from error

    def _reader_name(self, table: SourceTable) -> str:
        base = f"{table.source}__{table.name}"
        self._seen[base] += 1
        name = base if self._seen[base] == 1 else f"{base}__{self._seen[base]}"
        watermark = table.watermark
        said = f"{watermark.column} {watermark.delay}" if watermark else None
        self.uses.append(SourceUse(name, table.full_name, said, table.path))
        return name

    def _model_finding(self, model: CompiledModel, error: PySparkException) -> Finding:
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


def _no_query(model: CompiledModel, command: str) -> Finding:
    return Finding(
        "no-query",
        f"`{model.name}` is not a query: it holds a command ({command})",
        "a model is one SELECT; Spark would carry a command out at once, and could change or delete data",
        "write the SELECT alone; the sink says where its rows go",
        model.file.location,
    )


def _source_fix(error: Exception) -> str:
    if "Failed to find the data source" in str(error):
        return "correct the format, or add the package that has it to the target's packages:"
    return "correct the source's declaration"


def _blame(table: SourceTable, error: Exception) -> Location:
    """The key of the source's YAML that Spark's error is about, as far as its condition tells."""
    condition = read_error(error).condition or ""
    for key, words in (("path", ("PATH",)), ("schema", ("PARSE", "SCHEMA", "DATATYPE")), ("format", ("DATA_SOURCE",))):
        if key in table.places and any(word in condition for word in words):
            return table.places[key]
    return table.location
