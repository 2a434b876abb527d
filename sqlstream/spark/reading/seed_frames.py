"""Reads seeds as DataFrames, with the types of their columns; the project's loader has checked their text.

On a cluster and over Connect, the driver reads the files and sends the rows: other machines do not have the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, monotonically_increasing_id, struct, to_csv
from pyspark.sql.types import DataType, StringType, StructField, StructType, TimestampType

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.configuration.documents import DeclaredColumn
from sqlstream.project.declarations.seeds import MOST_COUNTED, find_values, first_few, seed_rows, wrong_type
from sqlstream.project.files.paths import escaped
from sqlstream.project.values import Seed
from sqlstream.project.wording import quoted as named
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import analysed, infer_csv_schema, is_connect, runs_here
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.reading.sources import Readers, quoted
from sqlstream.spark.reading.type_text import HAS_DAY, without_todays_times

_CSV = {
    "header": "true",
    "multiLine": "true",
    "quote": '"',
    "escape": '"',
    "encoding": "UTF-8",
    "mode": "FAILFAST",
    "enforceSchema": "false",
    "columnPruning": "false",
}
"""CSV as in RFC 4180 and in spreadsheets: quotes within quotes are doubled, and quoted text can contain line breaks.

With the last three, a query fails if the file has changed; otherwise it would read nulls.
"""


def open_seed(seed: Seed, readers: Readers) -> DataFrame:
    """Returns the rows of a seed; types that are not declared are inferred.

    Declared types are cast from text, so that a zip code 01234 declared as `string` does not change.
    Raises: FindingsError for unknown types, and for values that do not have their column's type; Spark's errors.
    """
    text = _open_text(seed, readers)
    declared = _declared_types(seed, text, readers)
    _check_values(seed, text, declared, readers)
    types = _inferred_types(text, declared) | declared
    return text.select(*(_column(text, at).cast(types[at]).alias(name) for at, name in enumerate(seed.header)))


def _open_text(seed: Seed, readers: Readers) -> DataFrame:
    """Returns the rows of a seed, all columns as text. Raises: FindingsError; Spark's errors."""
    schema = StructType([StructField(name, StringType()) for name in seed.header])
    session = readers.session
    if runs_here(session):
        # the scheme, because other paths can be on HDFS by default
        path = f"file:{escaped(str(readers.root / seed.path))}"
        return session.read.options(**_CSV, sep=seed.delimiter).schema(schema).csv(path)
    import pyarrow as pa  # takes 0.2 s to load

    rows = seed_rows(readers.root, seed)
    columns = zip(*rows, strict=True) if rows else [()] * len(seed.header)
    # from Arrow, rows become part of the plan; a list becomes a relation of unknown size, which is never broadcast
    arrays = [pa.array(values, pa.string()) for values in columns]
    table = pa.Table.from_arrays(arrays, names=list(seed.header))
    return session.createDataFrame(table, schema).coalesce(1)


def _column(frame: DataFrame, at: int) -> Column:
    return frame[quoted(frame.columns[at])]


def _inferred_types(text: DataFrame, declared: Mapping[int, DataType]) -> dict[int, DataType]:
    """Returns the types that Spark infers for the columns without a declared type, by column number. A column with
    times of day, such as 08:30, is text.

    Spark's reader can infer the types of a file, but then treats its name as a pattern, even if it is escaped.
    """
    others = [at for at in range(len(text.columns)) if at not in declared]
    if not others:
        return {}
    lines = text.select(to_csv(struct(*(_column(text, at) for at in others)), {"escape": '"'}))
    options = {"escape": '"'}
    schema = call_internal(
        lines.sparkSession, "CSV reader", lambda: infer_csv_schema(lines, options), lambda: _infer(lines, options)
    )
    # Spark infers no columns from a file without rows
    found = [each.dataType for each in schema.fields] + [StringType()] * len(others)
    names = [text.columns[at] for at in others]
    fields = [StructField(name, data_type) for name, data_type in zip(names, found, strict=False)]
    known = without_todays_times(StructType(fields), lambda _: text.select(*(_column(text, at) for at in others)))
    return {at: field.dataType for at, field in zip(others, known, strict=True)}


def _infer(lines: DataFrame, options: Mapping[str, str]) -> StructType:
    """Returns the schema of the CSV in `lines` with the public API only, which passes each line through Python, except
    over Connect.
    """
    # over Connect, Spark 4.3 accepts rows as the lines of a file
    texts: Any = lines if is_connect(lines.sparkSession) else lines.rdd.map(lambda row: str(row[0]))
    return lines.sparkSession.read.options(**options, inferSchema=True).csv(texts).schema


def _declared_types(seed: Seed, text: DataFrame, readers: Readers) -> dict[int, DataType]:
    """Returns the declared types by column number. Raises: FindingsError if Spark cannot cast text to one."""
    numbers = {name.lower(): at for at, name in enumerate(seed.header)}
    types: dict[int, DataType] = {}
    findings: list[Finding] = []
    for column in seed.columns:
        at = numbers[column.name.lower()]
        try:
            types[at] = DataType.fromDDL(column.data_type or "string")
            analysed(text.select(_column(text, at).try_cast(types[at])))
        except PySparkException as error:
            findings.append(_wrong_type(seed, column, error, readers))
    if findings:
        raise FindingsError(findings)
    return types


def _check_values(seed: Seed, text: DataFrame, types: Mapping[int, DataType], readers: Readers) -> None:
    """Raises: FindingsError for values that do not have their declared type, which Spark can turn into null."""
    columns = {at: _column(text, at) for at, data_type in types.items() if not isinstance(data_type, StringType)}
    if not columns:
        return
    wrong = [column.isNotNull() & ~_has_type(column, types[at]) for at, column in columns.items()]
    # Spark reads the file as one partition, so these are the row numbers
    numbered = text.select(monotonically_increasing_id().alias("row"), array(*wrong).alias("wrong"))
    rows = numbered.where("exists(wrong, is_wrong -> is_wrong)").limit(MOST_COUNTED).collect()
    cells = [(row["row"], at) for row in rows for at, is_wrong in zip(columns, row["wrong"], strict=True) if is_wrong]
    if cells:
        raise FindingsError(first_few(cells, lambda cell: _wrong_value(seed, cell, types[cell[1]], readers)))


def _has_type(text: Column, data_type: DataType) -> Column:
    """Returns whether a text is a value of the type. Without a day, which Spark would add, it is no timestamp."""
    fits = text.try_cast(data_type).isNotNull()
    return fits & text.rlike(HAS_DAY) if isinstance(data_type, TimestampType) else fits


def _wrong_value(seed: Seed, cell: tuple[int, int], data_type: DataType, readers: Readers) -> Finding:
    name = seed.header[cell[1]]
    declared = next(column for column in seed.columns if column.name.lower() == name.lower())
    place = seed.location_of_column(declared.name, "data_type")
    found = find_values(readers.root, seed, [cell])
    location, value = found[0] if found else (seed.location, "")
    return Finding(
        "seed-value",
        f"{named(value)} does not have the type {named(data_type.simpleString())}",
        f"{place.path}:{place.line} declares this type for {named(name)}"
        if place
        else "the column has this declared type",
        "fix the value, leave it empty for null, or declare another type, such as `string`",
        location,
    )


def _wrong_type(seed: Seed, column: DeclaredColumn, error: PySparkException, readers: Readers) -> Finding:
    return error_finding(
        error,
        code="seed-column",
        what=wrong_type(seed, column),
        place=Place(seed.location_of_column(column.name, "data_type") or seed.location),
        secrets=readers.secrets,
        fix="use a Spark type, such as `string`, `bigint`, `double`, `date` or `timestamp`",
    )
