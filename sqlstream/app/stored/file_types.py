"""Compares the types in the newest local ORC and Avro files of sources with the declared ones, before they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from sqlstream.app.stored.local_sources import NEWEST_FILES, newest_files
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.errors import Finding
from sqlstream.project.files.paths import escaped
from sqlstream.project.formats.stored_types import READS_RIGHTLY, misread_fields
from sqlstream.project.messages.avro import AvroSchemaError, file_type
from sqlstream.project.types.data_types import MICROS, DataType, Primitive, Struct, read_json_schema, type_ddl
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm.gateway import SPARK_ERRORS


def type_findings(
    compiled: CompiledProject, nodes: Collection[str], session: SparkSession, *, resumes: bool = False
) -> list[Finding]:
    """Returns a finding for each declared column of an ORC or Avro source in `nodes` (unique ids) that Spark would read
    wrongly from a new file, without an error.

    A query that `resumes` has read the older files, whose types may have been other ones: only the newest counts.
    """
    found: list[Finding] = []
    for node in nodes:
        table = compiled.sources.get(node)
        if table is not None and table.format in READS_RIGHTLY:
            found += _misread(compiled, node, table, session, 1 if resumes and table.mode == "stream" else NEWEST_FILES)
    return found


def _misread(
    compiled: CompiledProject, node: str, table: SourceTable, session: SparkSession, count: int
) -> Iterator[Finding]:
    declared = compiled.known_columns(node) or ()
    for path in newest_files(compiled, table, count):
        with suppress(*SPARK_ERRORS, OSError, AvroSchemaError):  # Spark reports what it cannot read
            stored = stored_type(table.format, path, session)
            columns = [column for column in declared if f"/{column.name}=" not in path]
            wrong = list(misread_fields(table.format, stored.fields, columns)) if isinstance(stored, Struct) else []
            if wrong:
                for column, field, *types in wrong:
                    was, now = map(_shown, types)
                    yield _finding(table, path, column, field, was, now)
                return


def stored_type(file_format: str, path: str, session: SparkSession) -> DataType | None:
    """Returns the type of the rows in a local file of `orc` or `avro`, None if sqlstream does not know it.

    Raises: Spark's errors, OSError, AvroSchemaError.
    """
    if file_format == "avro":
        with Path(path).open("rb") as file:
            return file_type(file)
    return read_json_schema(session.read.orc(escaped(path)).schema.json())


def _shown(kind: DataType) -> str:
    if isinstance(kind, Primitive) and kind.parameters == MICROS:
        return kind.name
    return type_ddl(kind, as_written=True)


def _finding(table: SourceTable, path: str, column: str, field: str, stored: str, declared: str) -> Finding:
    keys = (f"columns.{column}", "columns", "schema", "schema_file")
    place = next((table.locations[key] for key in keys if key in table.locations), table.location)
    if table.format == "orc":
        reason = f"Spark would convert each {stored} in ORC to {declared} without an error, also those that do not fit"
    else:
        reason = (
            f"Spark would take the microseconds of each {stored} in Avro for milliseconds, and make a wrong {declared} "
            "of it without an error"
        )
    return Finding(
        "file-types",
        f"{quoted(field)} of source {quoted(table.full_name)} is declared as {declared}, and is {stored} in {path}",
        reason,
        f"declare it as {stored}, and cast it in the model; or move the file to another folder, if it is wrong",
        place,
    )
