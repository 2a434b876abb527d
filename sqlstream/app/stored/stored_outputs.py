"""Finds the stored outputs that queries read: which version of each exists, and with which columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.target_storage import storage_base, versioned_output
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.formats.format import BATCH
from sqlstream.project.values import SourceTable, StoredOutput
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import storage_for, storage_problems
from sqlstream.spark.writing.table_formats.table import DELTA_LOG
from sqlstream.state.checkpoints import read_checkpoint
from sqlstream.state.layout import query_root
from sqlstream.state.ledger import OutputColumn


@dataclass(frozen=True)
class WrittenOutput:
    """What the query of a model writes, or has written: a path or a table, and its columns if they are known."""

    path: str
    columns: tuple[OutputColumn, ...] | None


@dataclass(frozen=True)
class StoredOutputs:
    """Finds stored outputs. `planned` are those of the queries that start in this run, by the names of their models."""

    loaded: Loaded
    session: SparkSession
    secrets: Secrets
    planned: Mapping[str, WrittenOutput]

    def resolve(self, nodes: Iterable[str]) -> CompiledProject:
        """Returns the project in which the tables that the queries of `nodes` read are the existing outputs.

        Raises: FindingsError for an output that neither exists nor is written in this run.
        """
        compiled = self.loaded.compiled
        needed = {node for each in nodes for node in {each, *compiled.upstream(each)} & compiled.stored.keys()}
        if not needed:
            return compiled
        found = {node: self._resolve(compiled.stored[node]) for node in sorted(needed)}
        missing = [table for table in found.values() if not is_written(table) and table.name not in self.planned]
        if missing:
            raise FindingsError([self._missing(table) for table in missing])
        return replace(compiled, stored={**compiled.stored, **found})

    def _resolve(self, table: SourceTable) -> SourceTable:
        output = self.planned.get(table.name) or self.written(self.loaded.compiled.writer_of(table))
        schema = table.spark_schema
        if output.columns is not None:
            schema = Schema(table.location, ddl=", ".join(column.ddl for column in output.columns))
        path, name = (output.path, None) if table.table is None else (None, output.path)
        stored = StoredOutput(table.name, exists=self._exists(table, output.path))
        return table.model_copy(update={"path": path, "table": name, "spark_schema": schema, "stored": stored})

    def written(self, model: CompiledModel, output: Output | None = None) -> WrittenOutput:
        """Returns the output of the current version of a query that is not part of this run: to its first sink, or to
        that of `output`. Raises: FindingsError.
        """
        base, output = storage_base(self.loaded), output or model.output
        if output is None:
            raise ValueError(f"{model.name} has no sink")
        root = query_root(base, model.query_id, model.config.checkpoint)
        with storage_problems(root, model.file.location, self.secrets):
            state = read_checkpoint(lambda path: storage_for(path, self.session), root)
        version, identity = max(state.version, 1), state.ledger.identity if state.ledger else None
        columns = identity.columns if identity else None
        path = versioned_output(self.loaded, output, version, state.published)
        return WrittenOutput(path or "", columns)

    def _exists(self, table: SourceTable, path: str) -> bool:
        with storage_problems(path, table.location, self.secrets):
            if table.table is not None:
                return bool(self.session.catalog.tableExists(path))
            storage, path = storage_for(path, self.session)
            if table.format == "delta":
                return storage.exists(f"{path}/{DELTA_LOG}")
            output = self.loaded.compiled.writer_of(table).output
            if table.mode == BATCH or output is None or not output.partition_by:
                return storage.exists(path)
            # a stream finds the columns of folders when it starts, and cannot read them if there is no folder yet
            start = f"{output.partition_by[0].lower()}="
            return any(name.lower().startswith(start) for name in storage.names(path))

    def _missing(self, table: SourceTable) -> Finding:
        return Finding(
            "stored-missing",
            f"{table.described} does not exist yet",
            f"the query of `{table.name}` has not written to {table.path or table.table}",
            f"run it first, or in the same run: `sqlstream run --select {table.name}+`",
            table.location,
        )


def is_written(table: SourceTable) -> bool:
    """Returns whether a table can be read: every source, and a stored output that exists."""
    return table.stored is None or table.stored.exists


def reads_static_outputs(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the query of `model` reads a stored output whose files Spark lists when the query starts."""
    return any(table.stored is not None and table.mode == BATCH for table in compiled.tables_of(model.unique_id))
