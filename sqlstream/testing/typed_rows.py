"""Reads the rows of a case as Spark rows with exactly the declared types."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
    VariantType,
)

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.types.data_types import Field, Struct, read_json_schema
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.yaml import YamlMapping
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.memory_streams import JavaRows, RowMaker
from sqlstream.state.runs.case_outcomes import Row
from sqlstream.testing.fixture_values import Json, ValueReader

T = TypeVar("T")


@dataclass(frozen=True)
class TypedRows:
    """Reads rows in one session. `where` names what the rows belong to, such as `the input ref('x')`."""

    session: SparkSession
    where: str

    def read(self, batches: Sequence[Rows], schema: StructType) -> tuple[JavaRows, list[int]]:
        """Returns the rows of all `batches` in order, in the types of `schema`, and the number of rows in each.

        Raises: FindingsError for columns and values that do not fit, with locations.
        """
        frame, counts = self.frame(batches, schema)
        return self._collected(batches, lambda: RowMaker(self.session).java_rows(frame)), counts

    def frame(self, batches: Sequence[Rows], schema: StructType) -> tuple[DataFrame, list[int]]:
        """Returns the rows of all `batches` in order as a static table that Spark has not evaluated yet, and the number
        of rows in each. Raises: FindingsError.
        """
        maker = RowMaker(self.session)
        if any(rows.sql is not None for rows in batches):
            rows, counts = self._queried(batches, schema, maker)
            return maker.frame(rows, nullable(schema)), counts
        findings: list[Finding] = []
        reader = ValueReader(self.where, findings)
        fields = fields_of(schema)
        texts = [[_text(reader.row(row, fields)) for row in rows.rows] for rows in batches]
        if findings:
            raise FindingsError(findings)
        flat = [text for batch in texts for text in batch]
        return self._typed(maker, flat, schema), [len(batch) for batch in texts]

    def given(self, rows: Rows) -> frozenset[str]:
        """Returns the columns that any of the rows has, in lower case. Raises: FindingsError."""
        if rows.sql is not None:
            return frozenset(name.casefold() for name in self._query(rows).columns)
        return frozenset().union(*map(columns_of, rows.rows))

    def values(self, batches: Sequence[Rows], schema: StructType) -> tuple[list[Row], list[int]]:
        """Returns the rows of all `batches` as values, and the number of rows in each. Raises: FindingsError."""
        frame, counts = self.frame(batches, schema)
        return self._collected(batches, lambda: RowMaker(self.session).rows(frame)), counts

    def _typed(self, maker: RowMaker, texts: Sequence[str], schema: StructType) -> DataFrame:
        numbered = StructType([StructField(str(at), _as_text(each.dataType)) for at, each in enumerate(schema)])
        return maker.parse(texts, numbered, nullable(schema))

    def _queried(self, batches: Sequence[Rows], schema: StructType, maker: RowMaker) -> tuple[JavaRows, list[int]]:
        """Returns the rows of queries, with columns matched by name and cast to the declared types."""
        found, counts = None, []
        for rows in batches:
            if rows.sql is None:
                part, (count,) = self.read([rows], schema)
            else:
                part = self._collected([rows], partial(maker.java_rows, self._select(rows, schema)))
                count = part.size()
            counts.append(count)
            if found is None:
                found = part
            else:
                found.addAll(part)
        return found, counts

    def _select(self, rows: Rows, schema: StructType) -> DataFrame:
        frame = self._query(rows)
        names = {name.casefold(): name for name in frame.columns}
        known = [each.name for each in schema]
        wrong = [name for name in frame.columns if name.casefold() not in {each.casefold() for each in known}]
        if wrong:
            what = f"`{wrong[0]}` is not a column of {self.where}"
            why, fix = f"the columns are {', '.join(known)}", "name the columns with `as`"
            raise FindingsError([Finding("unit-test-column", what, why, fix, rows.location)])
        columns = [
            (col(f"`{names[each.name.casefold()]}`") if each.name.casefold() in names else lit(None))
            .cast(each.dataType)
            .alias(each.name)
            for each in nullable(schema)
        ]
        return frame.select(*columns)

    def _query(self, rows: Rows) -> DataFrame:
        try:
            return self.session.sql(rows.sql or "")
        except SPARK_ERRORS as error:
            raise FindingsError([_sql_problem(rows, error)]) from error

    def _collected(self, batches: Sequence[Rows], collect: Callable[[], T]) -> T:
        try:
            return collect()
        except SPARK_ERRORS as error:
            what = f"a value does not fit a column of {self.where}"
            why = f"Spark reports: {read_error(error).message}"
            fix = "fix the value, or the type of the column"
            raise FindingsError([Finding("unit-test-value", what, why, fix, batches[0].location)]) from error


def columns_of(row: YamlMapping) -> frozenset[str]:
    """Returns the columns that a row has, in lower case."""
    return frozenset(entry.key.casefold() for entry in row.entries)


def fields_of(schema: StructType) -> tuple[Field, ...]:
    """Returns the columns of a Spark schema."""
    found = read_json_schema(schema.json())
    return found.fields if isinstance(found, Struct) else ()


def nullable(schema: StructType) -> StructType:
    """Returns the same columns as a reader returns them: nullable, and with text of any length."""

    def plain(data_type: DataType) -> DataType:
        return StringType() if isinstance(data_type, CharType | VarcharType) else data_type

    return StructType([StructField(each.name, _rebuilt(each.dataType, plain)) for each in schema])


def _as_text(data_type: DataType) -> DataType:
    """Returns the same structure with text for all values that Spark casts from text, and for the keys of maps. Spark's
    JSON reader takes bytes as base64.
    """

    def text(data_type: DataType) -> DataType:
        return data_type if isinstance(data_type, BinaryType | VariantType) else StringType()

    return _rebuilt(data_type, text, key=StringType())


def _rebuilt(data_type: DataType, leaf: Callable[[DataType], DataType], key: DataType | None = None) -> DataType:
    """Returns a nullable type of the same structure, with `leaf` applied to types without parts, and maps by `key`."""
    if isinstance(data_type, StructType):
        return StructType([StructField(each.name, _rebuilt(each.dataType, leaf, key)) for each in data_type])
    if isinstance(data_type, ArrayType):
        return ArrayType(_rebuilt(data_type.elementType, leaf, key))
    if isinstance(data_type, MapType):
        return MapType(key or data_type.keyType, _rebuilt(data_type.valueType, leaf, key))
    return leaf(data_type)


def _text(values: Sequence[Json]) -> str:
    """Returns a row as JSON, without nulls: a null in JSON would be a value of a variant."""
    return json.dumps({at: value for at, value in enumerate(values) if value is not None}, ensure_ascii=True)


def _sql_problem(rows: Rows, error: Exception) -> Finding:
    why = f"Spark reports: {read_error(error, rows.sql).message}"
    return Finding("unit-test-fixture", "this SQL returns no rows", why, "fix the query", rows.location)
