"""The rows of a case as Spark's rows, in exactly the types that are declared."""

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
from sqlstream.project.types.types import Field, Struct, read_json_schema
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.yaml import YamlMapping
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.memory_streams import JavaRows, RowMaker
from sqlstream.spark.spark_errors import read_error
from sqlstream.state.results.unit_tests import Row
from sqlstream.testing.values import Json, ValueReader

T = TypeVar("T")


@dataclass(frozen=True)
class TypedRows:
    """Reads rows in one session. `where` says what they are rows of: `the input ref('x')`."""

    session: SparkSession
    where: str

    def read(self, batches: Sequence[Rows], schema: StructType) -> tuple[JavaRows, list[int]]:
        """Returns the rows of all `batches` one after the other in the types of `schema`, and how many each has.

        Raises: FindingsError for what does not fit, at its place.
        """
        frame, counts = self.frame(batches, schema)
        return self._collected(batches, lambda: RowMaker(self.session).java_rows(frame)), counts

    def frame(self, batches: Sequence[Rows], schema: StructType) -> tuple[DataFrame, list[int]]:
        """Returns what `read` does, as a static table that has not been evaluated. Raises: FindingsError."""
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
        """Returns the columns that any of the rows gives, in lower case. Raises: FindingsError."""
        if rows.sql is not None:
            return frozenset(name.casefold() for name in self._asked(rows).columns)
        return frozenset().union(*map(columns_of, rows.rows))

    def values(self, batches: Sequence[Rows], schema: StructType) -> tuple[list[Row], list[int]]:
        """Returns the rows of all `batches` as values, and how many each has. Raises: FindingsError."""
        frame, counts = self.frame(batches, schema)
        return self._collected(batches, lambda: RowMaker(self.session).rows(frame)), counts

    def _typed(self, maker: RowMaker, texts: Sequence[str], schema: StructType) -> DataFrame:
        numbered = StructType([StructField(str(at), _as_text(each.dataType)) for at, each in enumerate(schema)])
        return maker.parse(texts, numbered, nullable(schema))

    def _queried(self, batches: Sequence[Rows], schema: StructType, maker: RowMaker) -> tuple[JavaRows, list[int]]:
        """The rows of queries: columns by their names, cast to the declared types."""
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
        frame = self._asked(rows)
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

    def _asked(self, rows: Rows) -> DataFrame:
        try:
            return self.session.sql(rows.sql or "")
        except SPARK_ERRORS as error:
            raise FindingsError([_sql_problem(rows, error)]) from error

    def _collected(self, batches: Sequence[Rows], collect: Callable[[], T]) -> T:
        try:
            return collect()
        except SPARK_ERRORS as error:
            said = read_error(error)
            what = f"a value does not fit a column of {self.where}"
            why = f"Spark reports: {said.message}"
            finding = Finding(
                "unit-test-value", what, why, "fix the value, or the type of the column", batches[0].location
            )
            raise FindingsError([finding]) from error


def columns_of(row: YamlMapping) -> frozenset[str]:
    """Returns the columns that a row gives, in lower case."""
    return frozenset(entry.key.casefold() for entry in row.entries)


def fields_of(schema: StructType) -> tuple[Field, ...]:
    """Returns the columns of a schema of Spark's."""
    found = read_json_schema(schema.json())
    return found.fields if isinstance(found, Struct) else ()


def nullable(data_type: StructType) -> StructType:
    """Returns the same columns as a reader gives them: each may be null, and text has no longest length."""
    made = _nullable(data_type)
    if not isinstance(made, StructType):
        raise AssertionError("a struct stays one")  # noqa: TRY004 - no caller can cause it
    return made


def _nullable(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType([StructField(each.name, _nullable(each.dataType)) for each in data_type])
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(data_type.keyType, _nullable(data_type.valueType))
    return StringType() if isinstance(data_type, CharType | VarcharType) else data_type


def _as_text(data_type: DataType) -> DataType:
    """The same shape with text for all values that Spark casts from text; its JSON reader has bytes as base64."""
    if isinstance(data_type, StructType):
        return StructType([StructField(each.name, _as_text(each.dataType)) for each in data_type])
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_text(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(StringType(), _as_text(data_type.valueType))
    return data_type if isinstance(data_type, BinaryType | VariantType) else StringType()


def _text(values: Sequence[Json]) -> str:
    return json.dumps(dict(enumerate(values)), ensure_ascii=True)


def _sql_problem(rows: Rows, error: Exception) -> Finding:
    why = f"Spark reports: {read_error(error, rows.sql).message}"
    return Finding("unit-test-fixture", "this SQL returns no rows", why, "fix the query", rows.location)
