"""The stored outputs that queries read, found in the ledgers of their writers."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.values import SourceTable
from sqlstream.state.checkpoints import FilesOf, read_checkpoint
from sqlstream.state.layout import output_path, query_root
from sqlstream.state.ledger import Ledger


def with_stored_tables(
    compiled: CompiledProject, model: CompiledModel, files_of: FilesOf, storage: str
) -> CompiledProject:
    """Returns the project in which the query of `model` reads the current version of each stored output, whose ledger
    is in `storage`.

    Raises: OSError, Spark's errors.
    """
    needed = sorted(compiled.upstream(model.unique_id) & compiled.stored.keys())
    if not needed:
        return compiled
    found = {node: _resolved(compiled, compiled.stored[node], files_of, storage) for node in needed}
    return replace(compiled, stored={**compiled.stored, **found})


def _resolved(compiled: CompiledProject, table: SourceTable, files_of: FilesOf, storage: str) -> SourceTable:
    writer = compiled.writer_of(table)
    ledger = read_checkpoint(files_of, query_root(storage, writer.query_id, writer.config.checkpoint)).ledger
    schema = table.spark_schema if ledger is None or ledger.identity.columns is None else _schema(ledger, table)
    is_current = ledger is not None and writer.output is not None and ledger.identity.sink_path == writer.output.place
    place = ledger.output if ledger is not None and is_current else None
    if table.path is None:
        return table.model_copy(update={"table": place or table.table, "spark_schema": schema})
    return table.model_copy(update={"path": place or output_path(storage, table.path), "spark_schema": schema})


def _schema(ledger: Ledger, table: SourceTable) -> Schema:
    columns = ledger.identity.columns or ()
    return Schema(table.location, ddl=", ".join(f"{quote_identifier(each.name)} {each.type}" for each in columns))
