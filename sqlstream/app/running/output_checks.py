"""Checks one output of a query before it starts: its table, and whether another checkpoint has written to it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.compiled import Output
from sqlstream.errors import FindingsError
from sqlstream.location import Place
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.running.prepare import PreparedQuery
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import StorageOf
from sqlstream.spark.storage.snapshots import is_snapshot
from sqlstream.spark.storage.storage import storage_problems, use_fast_checkpoint_files
from sqlstream.spark.table_formats.writers import table_of
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.spark.writing.tables import table_columns
from sqlstream.state.checkpoints import has_committed_files
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.output_columns import ColumnChange, table_problems
from sqlstream.state.refusals import output_in_use, unfit_format_table, unfit_table
from sqlstream.state.table_columns import table_column_problems


@dataclass(frozen=True)
class OutputCheck:
    """An output of `query` at the path, URI or table `place`. `identity` is that of the query with this sink alone;
    `old` is the same of the query that has written to it so far, None for a new output.
    """

    query: PreparedQuery
    output: Output
    place: str | None
    identity: QueryIdentity
    old: QueryIdentity | None
    secrets: Secrets

    def use_fast_files(self, root: str) -> None:
        """Lets Spark write the files of the checkpoint under `root` and of the output without extra processes."""
        if self.output.table is None:
            place = None if self.output.database_table else self.place
            use_fast_checkpoint_files(self.query.frame.sparkSession, root, place)

    def check_table(self) -> None:
        """Checks that the query's columns fit the table that it writes to. Raises: FindingsError."""
        if self.place is None:
            return
        if format_of(self.output.format).is_table:
            self._check_format_table(self.place)
        elif self.output.table is not None:
            self._check_catalog_table(self.place)

    def _check_catalog_table(self, name: str) -> None:
        with storage_problems(name, self.query.model.file.location, self.secrets):
            found = table_columns(self.query.frame.sparkSession, name)
        problems = table_problems(name, *found, self.identity) if found else ()
        if problems:
            model = self.query.model.name
            raise FindingsError([unfit_table(model, name, problem, self._place_of(problem)) for problem in problems])

    def _check_format_table(self, place: str) -> None:
        """Checks the same for a table of Delta Lake or Iceberg. Raises: FindingsError."""
        model = self.query.model
        table = table_of(SinkTarget(model, self.output, place, self.query.frame, self.secrets))
        with storage_problems(place, model.file.location, self.secrets):
            columns = None if table is None else table.columns()
            if table is None or columns is None:
                return
            partitions = table.partitions() if self.output.partition_by else ()
        problems = table_column_problems(table.name, columns, partitions, self.identity, self.old)
        if problems:
            pairs = [(problem, self._place_of(problem)) for problem in problems]
            raise FindingsError([unfit_format_table(model.name, place, *pair) for pair in pairs])

    def check_unused(self, storage_of: StorageOf) -> None:
        """Checks that the output of a new checkpoint has no batches of another one. Raises: FindingsError."""
        model, output = self.query.model, self.place
        if output is None or not format_of(self.output.format).writes_files:
            return
        with storage_problems(output, model.file.location, self.secrets):
            is_used = has_committed_files(storage_of, output)
            if self.identity.writes_snapshots:
                storage, folder = storage_of(output)
                is_used = storage.exists(folder) and not is_snapshot(storage, folder)
        if is_used:
            raise FindingsError([output_in_use(model.name, output, model.file.location)])

    def _place_of(self, problem: ColumnChange) -> Place:
        return self.query.compiled.locate_in(self.query.model.name, problem.offset)
