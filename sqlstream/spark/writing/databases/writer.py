"""Writes each micro-batch to a table in one transaction, together with a record of the batch, after a comparison of the
existing table.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import DataFrame

from sqlstream.compiler.digest import digest
from sqlstream.compiler.flow.type_rules import may_be_large
from sqlstream.compiler.rules.contracts import required_columns
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.project.databases.row_history import CHANGES
from sqlstream.project.databases.statements import (
    TOMBSTONES,
    BatchRecord,
    StoredColumn,
    TableLayout,
    apply_batch,
    apply_history,
    count_range,
    create_changes,
    create_table,
    create_tombstones,
    create_versions,
    delete_range,
    drop_outdated,
    keep_values,
    record_deletes,
    staged_rows,
    wrong_keys,
)
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import type_name
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.wording import quoted_list
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.writing.databases.database import (
    Connection,
    Database,
    DatabaseError,
    FoundColumn,
    FoundTable,
    has_output_column,
    table_name,
    used_by_another,
)
from sqlstream.spark.writing.databases.views import awaits_switch, check_writable
from sqlstream.spark.writing.micro_batches import MicroBatch, RefusedRowsError, SinkTarget, discard
from sqlstream.state.lost_outputs import CommittedBatches, lost_output
from sqlstream.state.refusals import new_version_text

logger = logging.getLogger("sqlstream.databases")


class DatabaseWriter:
    """Writes the batches of one query to a table of `database`: exactly once, also if Spark repeats a batch.

    Rows go to a staging table first. One transaction then checks the record of (query, batch), changes the table, and
    updates the record.
    """

    def __init__(self, target: SinkTarget, database: Database) -> None:
        self._target, self.database = target, database
        self._config = target.model.config
        self._replaces = not target.model.streaming or self._config.output_mode == "complete"
        self._sized: list[FoundColumn] = []
        self._records_output = False
        self._cleaned: set[str] = set()

    def open(self) -> None:
        """Creates the table of a stream, or checks that the existing one has the columns and the key of the query.

        The table of a batch model is created with its rows: a version whose table exists has its output.

        Raises: FindingsError, DatabaseError.
        """
        layout = self._layout()
        with closing(self.database.connect()) as connection:
            check_writable(connection, self.database, self._target.model, self.plain)
            self._records_output = self._create_records(connection)
            found = connection.find_table(self.database.table)
            if found is None:
                if self._target.model.streaming:
                    connection.run(create_table(layout.stored))
                    self._create_tables_beside(connection, layout)
                return
            self._sized = [column for column in found.columns if column.characters is not None]
            for statement in check_table(self._target, self.database, layout.stored, found):
                connection.run(statement)
            self._create_tables_beside(connection, layout)

    def _create_tables_beside(self, connection: Connection, layout: TableLayout) -> None:
        """Creates the table of deleted keys, or that of changes, if the query needs one. Raises: DatabaseError."""
        if layout.tombstones:
            connection.run(create_tombstones(layout))
        if layout.changes:
            connection.run(create_changes(layout))

    def _create_records(self, connection: Connection) -> bool:
        """Creates the table of records, and returns whether it has the output of each query. An early one gets this
        column, unless the user of the sink may not add it. Raises: DatabaseError.
        """
        record = self._record("")
        connection.run(record.create)
        if not has_output_column(connection.find_table(record.table)):
            with suppress(DatabaseError):  # another query has added it in the meantime, or the user may not
                connection.run(record.add_output)
        return has_output_column(connection.find_table(record.table))

    def _record(self, query_id: str, output: str = "") -> BatchRecord:
        return BatchRecord(self.database.dialect, query_id, self.database.schema, output)

    def check_unused(self, query_id: str) -> None:
        """Checks that no other query than `query_id` has written the rows of the table. Raises: FindingsError,
        DatabaseError.
        """
        problem = used_by_another(self.database, self._target.model, self.plain, query_id)
        if problem is not None:
            raise FindingsError([problem])

    def check(self, old: Collection[str], committed: CommittedBatches | None) -> None:
        """Checks before the first batch, without a change, that the table fits the query and has its batches. `old` are
        the columns that the query has written so far, and `committed` its batches, None for a new query.

        Raises: FindingsError, DatabaseError.
        """
        layout, database = self._layout(), self.database
        connection = database.connect_existing()
        if connection is None:
            if committed is not None:
                raise FindingsError([self._lost("the file does not exist", committed)])
            return
        with closing(connection):
            found = connection.find_table(database.table)
            if found is not None:
                check_table(self._target, database, layout.stored, found, old)
            elif committed is None or awaits_switch(connection, database, self.plain):
                return
            else:
                raise FindingsError([self._lost(f"the table {database.table} does not exist", committed)])
            # the next batch replaces all rows, so lost ones do no harm
            if committed is not None and not self._replaces:
                self._check_record(connection, committed)

    def _check_record(self, connection: Connection, committed: CommittedBatches) -> None:
        """Compares the record of batches with the checkpoint. Raises: FindingsError, DatabaseError."""
        record = self._record(committed.query_id)
        has_records = connection.find_table(record.table) is not None
        last = _last_batch(connection.first(record.find)) if has_records else -1
        if last < committed.last_written:
            state = f"ends with batch {last}" if last >= 0 else "has no batch of this query"
            new, _ = record.lock(self._target.model.name)
            statements = f"{record.create}; {new}; {record.update(committed.last)}"
            more = f"; or, if the table has the rows of all batches, run {statements}"
            raise FindingsError([self._lost(f"its record {record.table} {state}", committed, more)])
        # One more is usual: the database commits a batch before the checkpoint does, and the run ended in between.
        if last > committed.last + 1:
            problem = f"its record {record.table} has batches up to {last}, so the checkpoint is an older one"
            raise FindingsError([self._lost(problem, committed)])

    def _lost(self, problem: str, committed: CommittedBatches, more: str = "") -> Finding:
        model, sink = self._target.model, self._target.output.sink
        return lost_output(model.name, sink, problem, committed.last, model.location_of("sink"), more=more)

    @property
    def plain(self) -> str:
        """The table that readers use."""
        return self._target.output.database_table or self.database.dialect.quote(self._target.model.query_id)

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Applies the batch, unless the database has it already.

        Raises: RefusedRowsError, DatabaseError, Spark's errors. The table then has all of the batch or nothing.
        """
        layout = self._layout()
        record = self._record(batch.query_id, table_name(self.plain) if self._records_output else "")
        with closing(self.database.connect()) as connection:
            if self._target.model.streaming and _last_batch(connection.first(record.find)) >= batch.id:
                logger.info("%s: batch %s is already in %s", batch.model, batch.id, self.database.table)
                discard(rows)
                return
            self._drop_leftovers(connection, batch)
            staging, versions = self._new_staging(batch)
            staged = rows.selectExpr(*staged_rows(layout, self._config.delete_when))
            try:
                connection.stage(staged, layout, staging)
                if layout.changes:
                    connection.run(create_versions(layout, versions))
                self._apply(connection, layout, batch, record, (staging, versions))
            finally:
                with suppress(DatabaseError):  # an error of the batch itself matters more
                    connection.rollback()  # first: in MySQL, DROP TABLE commits the transaction
                    connection.drop_staging(staging)
                    connection.drop_staging(versions)

    def replace_range(self, rows: DataFrame, limits: DataFrame, batch: MicroBatch) -> int:
        """Replaces the rows of a range by `rows` in one transaction, and returns how many there were. The record of
        batches stays. `limits` has one column: a row with its first value in the range, and one with the first after
        it.

        Raises: RefusedRowsError, DatabaseError, Spark's errors. The table then has the rows that it had.
        """
        layout, record = self._layout(), self._record(batch.query_id)
        names = {name.lower() for name in limits.columns}
        column = next(each for each in layout.columns if each.name.lower() in names)
        ends = TableLayout(layout.dialect, layout.table, (column,), ())
        staging, limited = self._new_staging(batch)
        with closing(self.database.connect()) as connection:
            self._drop_leftovers(connection, batch)
            try:
                connection.stage(rows.selectExpr(*staged_rows(layout, None)), layout, staging)
                connection.stage(limits.selectExpr(*staged_rows(ends, None)), ends, limited)
                connection.begin()
                connection.first(record.lock(batch.model)[1])  # a run of this query in another process waits here
                self._check_lengths(connection, layout, staging)
                removed = connection.first(count_range(ends, limited))
                connection.run(delete_range(ends, limited))
                for statement in apply_batch(layout, staging, replaces=False):
                    connection.run(statement)
                connection.commit()
                return int(str(removed[0])) if removed is not None else 0
            finally:
                with suppress(DatabaseError):  # as in `write`
                    connection.rollback()
                    connection.drop_staging(staging)
                    connection.drop_staging(limited)

    def last_batch(self, query_id: str) -> int:
        """Returns the last batch of a query that the database has recorded, -1 without one. Raises: DatabaseError."""
        record = self._record(query_id)
        with closing(self.database.connect()) as connection:
            return _last_batch(connection.first(record.find))

    def _apply(
        self,
        connection: Connection,
        layout: TableLayout,
        batch: MicroBatch,
        record: BatchRecord,
        staged: tuple[str, str],
    ) -> None:
        staging, _ = staged
        # before the transaction: PostgreSQL would abort it if this asks for a table that does not exist
        created = self._table_of_batch_model(connection, layout)
        connection.begin()
        if self._target.model.streaming:
            # another process with this query waits here for the record, and then finds the batch in it
            add, find = record.lock(batch.model)
            connection.run(add)
            if _last_batch(connection.first(find)) >= batch.id:
                return  # another process has applied it in the meantime
            connection.run(record.update(batch.id))
        if layout.keys:
            self._check_keys(connection.first(wrong_keys(layout, staging)))
        self._check_lengths(connection, layout, staging)
        for statement in (*created, *self._changes(layout, *staged)):
            connection.run(statement)
        connection.commit()

    def _new_staging(self, batch: MicroBatch) -> tuple[str, str]:
        """Returns the names of a staging table and of one beside it, which no other attempt uses: a process that has
        lost its query may still write to those of its attempt.
        """
        name = f"{_staging_start(batch)}_{uuid4().hex[:8]}"
        names = (self.database.schema + self.database.dialect.quote(each) for each in (name, f"{name}_beside"))
        return next(names), next(names)

    def _drop_leftovers(self, connection: Connection, batch: MicroBatch) -> None:
        """Drops the staging tables that earlier processes of the query have left, before this one's first batch.
        One that still applies its table commits first, or fails because the table is gone. Raises: DatabaseError.
        """
        find = self.database.dialect.tables_beside
        if find is None or batch.query_id in self._cleaned:
            return
        record = self._record(batch.query_id)
        for (name,) in connection.all(find(record.table, _staging_start(batch))):
            connection.drop_staging(self.database.schema + self.database.dialect.quote(str(name)))
        self._cleaned.add(batch.query_id)

    def _changes(self, layout: TableLayout, staging: str, versions: str) -> Iterator[str]:
        """Yields the statements that change the table, and its table of deleted keys or of changes."""
        now = int(time.time())
        kept_from = now - int(interval_seconds(self._config.keep_deletes_for))
        if layout.changes:
            yield from apply_history(layout, staging, versions, now, kept_from)
            return
        if layout.sequence:
            yield from drop_outdated(layout, staging)
        yield from keep_values(layout, staging)
        yield from apply_batch(layout, staging, replaces=self._replaces)
        if layout.tombstones:
            yield from record_deletes(layout, staging, now, kept_from)

    def _table_of_batch_model(self, connection: Connection, layout: TableLayout) -> list[str]:
        """Returns the statement that creates the table of a batch model, if it does not exist."""
        if self._target.model.streaming or connection.find_table(layout.table) is not None:
            return []
        return [create_table(layout)]

    def _layout(self) -> TableLayout:
        dialect, config = self.database.dialect, self._config
        keys = (*config.unique_key, *config.sequence_by) if config.history else config.unique_key
        named, required = {key.lower() for key in keys}, required_columns(self._target.model)
        columns, large = [], []
        for field in self._target.frame.schema:
            type_ = parse_type(type_text(field.dataType))
            stored = dialect.store(type_, field.name.lower() in named)
            if stored is None:
                raise FindingsError([self._unstored(field.name, type_name(type_))])
            is_text = type_name(type_) in ("string", "char", "varchar")
            columns.append(StoredColumn(field.name, stored, is_text, field.name.lower() in required))
            if may_be_large(type_):
                large.append(field.name)
        deletes = config.delete_when is not None
        sequence = () if self._replaces else config.sequence_by
        layout = TableLayout(dialect, self.database.table, tuple(columns), keys, deletes, sequence)
        if config.unavailable_columns is not None:
            fixed = {*named, *(name.lower() for name in (*config.sequence_by, config.unavailable_columns))}
            kept = tuple(name for name in large if name.lower() not in fixed)
            layout = replace(layout, unavailable=config.unavailable_columns, large=kept)
        if config.history:
            others = tuple(column.name for column in columns if column.name.lower() not in named)
            return replace(layout, tracked=config.track_columns or others, changes=self._table_beside(layout, CHANGES))
        return replace(layout, tombstones=self._table_beside(layout, TOMBSTONES)) if deletes and sequence else layout

    def _table_beside(self, layout: TableLayout, start: str) -> str:
        """Returns the name of a table beside that of the query. Other keys or another sequence have tables of their
        own, and so have other columns of a history.
        """
        table = table_name(layout.table)
        known = layout.columns if start == CHANGES else (*layout.key_columns, *layout.sequence_columns)
        shape = [(column.name.lower(), column.stored.type) for column in known]
        readable = table.encode("ascii", "ignore").decode()[:24]  # PostgreSQL would cut a name of over 63 bytes
        name = f"{start}_{readable}_{digest(table, shape)[:12]}"
        return self.database.schema + layout.dialect.quote(name)

    def _check_keys(self, wrong: object) -> None:
        if wrong is None:
            return
        keys = ", ".join(f"`{key}`" for key in self._config.unique_key)
        is_null = str(wrong[0]) == "1"  # type: ignore[index]
        problem = "a row has null in" if is_null else "two rows of one batch have the same value of"
        fix = "leave such rows out, or use coalesce()" if is_null else "select one row for each key, or set sequence_by"
        raise RefusedRowsError(f"{problem} the unique_key {keys}: {fix}")

    def _check_lengths(self, connection: Connection, layout: TableLayout, staging: str) -> None:
        """Raises: RefusedRowsError for a text that is too long for its column in the table, which sqlstream has not
        created. The database's own error does not name the column; MySQL may cut the text instead.
        """
        sizes = {column.name.lower(): column for column in self._sized}
        for column in layout.columns:
            sized = sizes.get(column.name.lower())
            if sized is None:
                continue
            name = layout.dialect.quote(column.name)
            found = connection.first(f"SELECT MAX(CHAR_LENGTH({name})) FROM {staging}")
            longest = int(str(found[0])) if found is not None and found[0] is not None else 0
            if longest > (sized.characters or 0):
                raise RefusedRowsError(
                    f"a value of the column `{column.name}` has {longest} characters, but in the table {layout.table} "
                    f"the column is {sized.type}({sized.characters}): use a wider type there, or "
                    f"left(`{column.name}`, {sized.characters}) in the model"
                )

    def _unstored(self, column: str, type_: str) -> Finding:
        model = self._target.model
        return Finding(
            "sink-schema",
            f"sink `{self._target.output.sink}` cannot write the column `{column}` of `{model.name}`",
            f"its type is {type_}, which {self.database.dialect.title} cannot store",
            "cast the column to another type, or remove it",
            model.location_of("sink"),
        )


def _staging_start(batch: MicroBatch) -> str:
    """Returns the start of the names of staging tables: those of other queries in the schema have another one."""
    return f"_sqlstream_{batch.query_id.replace('-', '')}"


def _last_batch(row: object) -> int:
    """Returns the batch in the first row of a query for a record, -1 if there is none."""
    return -1 if row is None else int(row[0])  # type: ignore[index]


def check_table(
    target: SinkTarget, database: Database, layout: TableLayout, found: FoundTable, old: Collection[str] = ()
) -> list[str]:
    """Returns the statements that add the missing columns to the table, if sqlstream may add them. `old` are the
    columns that the query has written so far.

    Raises: FindingsError with all differences that sqlstream cannot or may not change.
    """
    differences = _Differences(target, database, layout, found)
    stale, missing = differences.stale(old), differences.missing()
    problems = [*differences.key(), *differences.other_keys(), *differences.types()]
    if not database.adds_columns and not stale:
        problems += missing
    if problems or stale:
        raise FindingsError([differences.finding(problems, stale)])
    return [statement for _, statement in missing]


class _Differences:
    def __init__(self, target: SinkTarget, database: Database, layout: TableLayout, found: FoundTable) -> None:
        self._target, self._database, self._layout, self._found = target, database, layout, found
        self._existing = {column.name.lower(): column for column in found.columns}

    def missing(self) -> list[tuple[str, str]]:
        """Returns each column that the table does not have: a description, and the statement that adds it."""
        quote = self._layout.dialect.quote
        return [
            (
                f"it has no column `{column.name}`",
                f"ALTER TABLE {self._layout.table} ADD COLUMN {quote(column.name)} {column.stored.type}",
            )
            for column in self._layout.columns
            if column.name.lower() not in self._existing
        ]

    def stale(self, old: Collection[str]) -> list[str]:
        """Returns the columns of the table that the query has written so far and no longer writes, if it updates rows:
        they would keep the old value.
        """
        model, written = self._target.model, {column.name.lower() for column in self._layout.columns}
        if not self._layout.keys or not model.streaming or model.config.output_mode == "complete":
            return []
        return [name for name in old if name.lower() not in written and name.lower() in self._existing]

    def _rename(self, stale: Sequence[str]) -> tuple[list[str], list[str]]:
        """Returns the statements that give stale columns the names of missing ones of their type and add the others,
        and the statements for new columns in place of the stale ones. No renames if no type fits.
        """
        table, quote = self._layout.table, self._layout.dialect.quote
        missing = {column.name: column for column in self._layout.columns if column.name.lower() not in self._existing}
        left, renames, drops = dict(missing), [], []
        for name in stale:
            new = next((each for each in left.values() if _holds(self._existing[name.lower()], each)), None)
            drops.append(f"ALTER TABLE {table} DROP COLUMN {quote(name)}")
            if new is None:
                renames.append(drops[-1])
            else:
                del left[new.name]
                renames.append(f"ALTER TABLE {table} RENAME COLUMN {quote(name)} TO {quote(new.name)}")
        added = {name: f"ALTER TABLE {table} ADD COLUMN {quote(name)} {missing[name].stored.type}" for name in missing}
        others = [*drops, *added.values()]
        return ([*renames, *map(added.__getitem__, left)], others) if renames != drops else ([], others)

    def types(self) -> Iterator[tuple[str, str]]:
        """Yields each column whose type cannot hold the values of the query, and the statement to change it, or ""."""
        for column in self._layout.columns:
            existing = self._existing.get(column.name.lower())
            if existing is not None and not _holds(existing, column):
                text = f"its column `{column.name}` is {_described(existing)}, but the model needs {column.stored.type}"
                yield text, self._change(column)

    def key(self) -> Iterator[tuple[str, str]]:
        """Yields the problem of a table whose rows the key does not identify, and the statement that adds the key."""
        keys = frozenset(key.lower() for key in self._layout.keys)
        if keys and keys <= self._existing.keys() and keys not in self._found.unique.values():
            names = [self._layout.dialect.quote(column.name) for column in self._layout.key_columns]
            text = f"it has no primary key or unique index on exactly {quoted_list(self._layout.keys)}"
            yield text, self._layout.dialect.add_key(self._layout.table, names)

    def other_keys(self) -> Iterator[tuple[str, str]]:
        """Yields the unique indexes for which the database would replace other rows, and how to drop each of them."""
        layout, drop = self._layout, self._layout.dialect.drop_unique
        keys = frozenset(key.lower() for key in layout.keys)
        if not keys or drop is None:
            return
        for name, columns in self._found.unique.items():
            # Two rows that are equal there have the same key; or the database numbers the rows, so no two are equal.
            if keys <= columns or any(self._is_numbered(column) for column in columns):
                continue
            text = f"its unique index on {quoted_list(sorted(columns))} makes {layout.dialect.title} replace other keys"
            yield text, drop(layout.table, name)

    def _is_numbered(self, column: str) -> bool:
        """Returns whether a column gets a new number in each row, because the query does not write it."""
        is_written = column in {written.name.lower() for written in self._layout.columns}
        return not is_written and column in self._existing and self._existing[column].is_numbered

    def _change(self, column: StoredColumn) -> str:
        dialect = self._layout.dialect
        if dialect.change_type is None:
            return ""
        return dialect.change_type(self._layout.table, dialect.quote(column.name), column.stored.type)

    def finding(self, differences: Sequence[tuple[str, str]], stale: Sequence[str] = ()) -> Finding:
        """Returns the finding about the differences: each is a description, and the statement to change it, or "".
        `stale` is as returned by `stale`.
        """
        model, title = self._target.model, self._layout.dialect.title
        texts = [text for text, _ in differences]
        texts += [f"updated rows would keep the old value of its column `{name}`" for name in stale]
        statements = [statement for _, statement in differences if statement]
        renames, others = self._rename(stale) if stale else ([], [])
        changes = [f"run in {title}: {'; '.join([*statements, *(renames or others)])}"]
        changes = changes if statements or stale else []
        if renames:
            changes.append(f"or, if the new column is not the old one with another name, {'; '.join(others)}")
        if any(not statement for _, statement in differences):
            changes.append("give the column another name")
        if stale:
            changes.append(f"or select {quoted_list(stale)} again")
        has_versions = model.streaming and all(format_of(each.format).keeps_output for each in model.outputs)
        if model.sql:  # rows beside a query, such as a quarantine, have no versions
            changes.append(f"or {new_version_text(model.name, can_run_parallel=has_versions)}")
        return Finding(
            "output-columns",
            f"the table {self._layout.table} does not fit the rows of `{model.name}`",
            "; ".join(texts),
            "; ".join(changes),
            model.location_of("sink"),
        )


def _holds(existing: FoundColumn, column: StoredColumn) -> bool:
    stored = column.stored
    fits = existing.digits is None or all(
        has >= needs for has, needs in zip(existing.digits, stored.digits, strict=True)
    )
    return fits and (existing.type == stored.type.lower() or existing.type in stored.accepts)


def _described(column: FoundColumn) -> str:
    if column.digits is None:
        return column.type
    whole, scale = column.digits
    return f"{column.type}({whole + scale},{scale})"
