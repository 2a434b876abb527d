"""Reads the rows that a sink holds, with the columns and the types of the query that wrote them."""

from __future__ import annotations

from contextlib import closing

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import from_json, lit, parse_json
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType, VariantType

from sqlstream.project.databases.dialect import AS_JSON, Dialect, type_family
from sqlstream.project.databases.jdbc_options import reader_options
from sqlstream.project.files.paths import escaped
from sqlstream.project.types.ddl import parse_type
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.databases.database import Database
from sqlstream.spark.writing.databases.jdbc_database import JdbcDatabase
from sqlstream.spark.writing.micro_batches import SinkTarget, column_of
from sqlstream.spark.writing.table_formats.table_writers import table_of
from sqlstream.spark.writing.writers import database_writer


def stored_rows(target: SinkTarget) -> DataFrame | None:
    """Returns the rows in a sink of a format that `keeps_output`, with the columns and types of `target.frame`. Columns
    that the sink does not have are null, and its others are left out. None if nothing has been written yet.

    Raises: DatabaseError, FindingsError, Spark's errors.
    """
    writer = database_writer(target)
    if writer is not None:
        return _table_rows(target, writer.database)
    table, session = table_of(target), target.frame.sparkSession
    if table is not None:
        return _with_types(session.table(table.name), target.frame.schema) if table.exists() else None
    storage, folder = storage_for(target.path or "", session)
    if not storage.exists(folder):
        return None
    reader = session.read.format(target.output.format).schema(target.frame.schema).options(**target.options)
    return reader.load(escaped(target.path or ""))


def _table_rows(target: SinkTarget, database: Database) -> DataFrame | None:
    """Returns the rows of a table of a database, None if it does not exist. Raises: DatabaseError, Spark's errors."""
    connection = database.connect_existing()
    if connection is None:
        return None
    session, fields = target.frame.sparkSession, target.frame.schema.fields
    with closing(connection):
        found = connection.find_table(database.table)
        if found is None:
            return None
        known = {column.name.lower() for column in found.columns}
        fields = [field for field in fields if field.name.lower() in known]
        listed = ", ".join(_stored_value(database.dialect, field) for field in fields)
        query = f"SELECT {listed} FROM {database.table}"  # noqa: S608 - quoted names
        if isinstance(database, JdbcDatabase):
            unread = {"dbtable", "query"}
            options = {name: value for name, value in database.options.items() if name.lower() not in unread}
            options["sessionInitStatement"] = database.dialect.session  # for its time zone
            rows = session.read.format("jdbc").options(**reader_options(options), query=query).load()
        else:
            texts = [StructField(field.name, _text_type(field.dataType)) for field in fields]
            values = [tuple(map(_as_text, row)) for row in connection.all(query)]
            rows = session.createDataFrame(values, StructType(texts))
    parsed = rows.select(*(_parsed(column_of(field.name), field.dataType).alias(field.name) for field in fields))
    return _with_types(parsed, target.frame.schema)


def _with_types(rows: DataFrame, schema: StructType) -> DataFrame:
    """Returns the columns of `schema` with its types, null where `rows` does not have them."""
    known = {name.lower() for name in rows.columns}
    columns = [(column_of(each.name) if each.name.lower() in known else lit(None), each) for each in schema]
    # as text, because a type of PySpark can say that its values have no nulls, to which Spark does not cast
    return rows.select(*(column.cast(type_text(each.dataType)).alias(each.name) for column, each in columns))


def _stored_value(dialect: Dialect, field: StructField) -> str:
    """Returns the SQL that reads a column."""
    name = dialect.quote(field.name)
    stored = dialect.store(parse_type(type_text(field.dataType)), False)
    return name if stored is None or stored.read == "{}" else f"{stored.read.format(name)} AS {name}"


def _text_type(kind: DataType) -> DataType:
    return kind if isinstance(kind, BinaryType) else StringType()


def _as_text(value: object) -> object:
    return value if value is None or isinstance(value, bytes) else str(value)


def _parsed(column: Column, kind: DataType) -> Column:
    """Returns a value that a database has stored, with its type in Spark."""
    if isinstance(kind, VariantType):
        return parse_json(column)
    if type_family(parse_type(type_text(kind))) in AS_JSON:
        return from_json(column, type_text(kind))
    return column.cast(kind)
