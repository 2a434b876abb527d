"""The table of a sink after the micro-batches of a case: rows replaced and deleted by key, as the sink does it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.reading.memory_streams import RowMaker
from sqlstream.spark.table_formats.merge import DELETES
from sqlstream.spark.writing.keys import RefusedRowsError, count_keys, last_rows
from sqlstream.state.results.unit_tests import Row, Value


class SinkTable:
    """The table to which `model` writes in the sink `output`, from empty. It has the columns of all batches so far."""

    def __init__(self, model: CompiledModel, output: Output) -> None:
        self._config, self._facts = model.config, format_of(output.format)
        self._keys = model.config.unique_key if self._facts.takes_keys else ()
        self._replaces = not model.streaming or model.config.output_mode == "complete"
        self._rows: dict[object, dict[str, Value]] = {}

    def write(self, rows: DataFrame, _number: int) -> None:
        """Applies a micro-batch. Raises: RefusedRowsError if the sink would refuse its keys; Spark's errors."""
        config, keys = self._config, self._keys
        if keys and config.sequence_by:
            rows = last_rows(rows, keys, config.sequence_by)
        if keys and (self._facts.is_database or not self._replaces):
            count_keys(rows, keys)
        marked = rows.selectExpr("*", f"coalesce(({config.delete_when or 'false'}), false) as {DELETES}")
        names = [name.lower() for name in marked.columns]
        if self._replaces:
            self._rows = {}
        for values in RowMaker(rows.sparkSession).rows(marked):
            row = dict(zip(names, values, strict=True))
            is_deleted = row.pop(DELETES)
            key = self._key(row)
            if is_deleted:
                self._rows.pop(key, None)
            else:
                self._rows[key] = {**self._rows.get(key, {}), **row}

    def _key(self, row: dict[str, Value]) -> object:
        """Returns what identifies a row: its key, or without keys a new number."""
        if not self._keys or self._replaces:
            return len(self._rows)
        values = [row.get(key.lower()) for key in self._keys]
        if self._facts.is_database and None in values:
            raise RefusedRowsError("a row has null in the unique_key: leave such rows out, or use coalesce()")
        return repr(values)

    def rows(self, columns: Sequence[str]) -> tuple[Row, ...]:
        """Returns all rows with these columns; null where a row was written without one."""
        return tuple(tuple(row.get(name.lower()) for name in columns) for row in self._rows.values())
