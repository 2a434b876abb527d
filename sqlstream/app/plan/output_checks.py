"""Checks one output of a query before it starts: its table, and whether another checkpoint has written to it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.compiled import Output
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.queries.prepare import PreparedQuery
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import StorageOf
from sqlstream.spark.storage.storage import storage_problems
from sqlstream.spark.writing.catalog_tables import table_columns, table_folder, table_provider
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.spark.writing.table_formats.table import FormatTable, queries_in
from sqlstream.spark.writing.table_formats.table_writers import table_of
from sqlstream.spark.writing.writers import database_writer
from sqlstream.state.checkpoints import is_used_folder
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.lost_outputs import CommittedBatches, lost_files, lost_output
from sqlstream.state.output_columns import ColumnChange, table_column_problems, table_problems
from sqlstream.state.query_versions import parallel_problem
from sqlstream.state.refusals import output_in_use, streamed_table_in_use, unfit_format_table, unfit_table


@dataclass(frozen=True)
class OutputCheck:
    """An output of `query` at the path, URI or table `path`. `identity` is that of the query with this sink alone;
    `old` is the same of the query that has written to it so far, None for a new output.
    """

    query: PreparedQuery
    output: Output
    path: str | None
    identity: QueryIdentity
    old: QueryIdentity | None
    secrets: Secrets

    def check_table(self, committed: CommittedBatches | None) -> None:
        """Checks that the query's columns fit the table that it writes to, and that the output has the batches that the
        query has committed (None: none, or a batch model). Raises: FindingsError, DatabaseError.
        """
        if self.path is None:
            return
        if format_of(self.output.format).is_database:
            self._check_database(committed)
        elif self.query.model.streaming and format_of(self.output.format).is_table:
            self._check_format_table(self.path, committed)
        elif self.query.model.streaming and self.output.table is not None:
            self._check_catalog_table(self.path, committed)

    def check_files(self, committed: CommittedBatches, storage_of: StorageOf) -> None:
        """Checks that the files of the output have these batches. Raises: FindingsError."""
        if self.path is None:
            return
        with storage_problems(self.path, self.query.model.file.location, self.secrets):
            problem = lost_files(storage_of, self.identity, self.path, committed.last)
        if problem is not None:
            raise FindingsError([self._lost(problem, committed)])

    def _check_database(self, committed: CommittedBatches | None) -> None:
        writer = database_writer(self._target)
        if writer is not None:
            columns = self.old.columns if self.old is not None else None
            writer.check([column.name for column in columns or ()], committed)

    def _check_catalog_table(self, name: str, committed: CommittedBatches | None) -> None:
        session = self.query.frame.sparkSession
        with storage_problems(name, self.query.model.file.location, self.secrets):
            found = table_columns(session, name)
            is_lost = committed is not None and found is None and not session.catalog.tableExists(name)
        if committed is not None and is_lost:
            raise FindingsError([self._lost(f"the table {name} does not exist", committed)])
        problems = table_problems(name, *found, self.identity) if found else ()
        if problems:
            model, can_run_parallel = self.query.model.name, self._has_versions
            pairs = [(problem, self._place_of(problem)) for problem in problems]
            raise FindingsError([unfit_table(model, name, *pair, can_run_parallel=can_run_parallel) for pair in pairs])

    def _check_format_table(self, path: str, committed: CommittedBatches | None) -> None:
        """Checks the same for a table of Delta Lake or Iceberg. Raises: FindingsError."""
        model, table = self.query.model, table_of(self._target)
        if table is None:
            return
        with storage_problems(path, model.file.location, self.secrets):
            columns = table.columns()
            partitions = table.partitions() if columns is not None and self.output.partition_by else ()
        if columns is None:
            if committed is not None:
                raise FindingsError([self._lost(f"the table {path} does not exist", committed)])
            return
        problems = table_column_problems(table.name, columns, partitions, self.identity, self.old)
        if problems:
            pairs = [(problem, self._place_of(problem)) for problem in problems]
            can_run_parallel = self._has_versions
            raise FindingsError(
                [unfit_format_table(model.name, path, *pair, can_run_parallel=can_run_parallel) for pair in pairs]
            )

    @property
    def _has_versions(self) -> bool:
        """Whether a new version of the query can run in parallel with this one."""
        place = Place(self.query.model.file.location)
        return self.old is not None and parallel_problem(self.query.identity, place, restartable=True) is None

    @property
    def _target(self) -> SinkTarget:
        return SinkTarget(self.query.model, self.output, self.path, self.query.frame, self.secrets)

    def _lost(self, problem: str, committed: CommittedBatches) -> Finding:
        model = self.query.model
        return lost_output(model.name, self.output.sink, problem, committed.last, model.location_of("sink"))

    def check_unused_table(self, query_id: str = "") -> None:
        """Checks that a database's table has no batches of another checkpoint than that of `query_id`, which is empty
        before the first batch. Raises: FindingsError, DatabaseError.
        """
        writer = database_writer(self._target) if self.query.model.streaming and self.path is not None else None
        if writer is not None:
            writer.check_unused(query_id)

    def check_unused_output(self, storage_of: StorageOf, *, accepts_rows: bool) -> None:
        """Checks that the folder or table of a new checkpoint has no batches of another one. With `accepts_rows`, a
        table keeps the rows of other queries. Raises: FindingsError.
        """
        model, path = self.query.model, self.path
        if path is None:
            return
        with storage_problems(path, model.file.location, self.secrets):
            table, folder = self._streamed_output(path)
            is_used = folder is not None and is_used_folder(
                *storage_of(folder), has_snapshots=self.identity.writes_snapshots
            )
            others = [] if table is None or accepts_rows else _other_queries(table)
        if folder is not None and is_used:
            raise FindingsError([output_in_use(model.name, folder, model.file.location)])
        if others:
            raise FindingsError([streamed_table_in_use(model.name, path, others, model.file.location)])

    def _streamed_output(self, path: str) -> tuple[FormatTable | None, str | None]:
        """Returns the existing table whose commits name the queries that have added rows to it, or the folder whose log
        lists their batches. Neither if each batch replaces all rows of a table. Raises: Spark's errors.
        """
        facts, session, model = format_of(self.output.format), self.query.frame.sparkSession, self.query.model
        if facts.writes_files:
            return None, path
        if not model.streaming or model.config.output_mode == "complete":
            return None, None
        table = table_of(self._target)
        if table is None and self.output.table is not None:
            provider = (table_provider(session, path) or "").lower()
            if not format_of(provider).is_table:
                return None, table_folder(session, path)
            table = FormatTable(session, provider, path)
        return (table if table is not None and table.exists() else None), None

    def _place_of(self, problem: ColumnChange) -> Place:
        return self.query.compiled.locate_in(self.query.model.name, problem.offset)


def _other_queries(table: FormatTable) -> list[str]:
    """Returns the ids of the streaming queries that have written to a table, none if the table has no rows."""
    queries = queries_in(table)
    return queries if queries and not table.session.table(table.name).isEmpty() else []
