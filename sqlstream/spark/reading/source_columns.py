"""Compares the declared columns of a source with those of its data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from pyspark.sql.types import DataType, StructType

from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.infer import Inferred
from sqlstream.spark.reading.sources import has_own_columns
from sqlstream.spark.reading.type_text import stored_fits, text_fits, type_text
from sqlstream.state.source_columns import InferredColumn, SourceColumns


def merge_columns(table: SourceTable, inferred: Inferred) -> SourceColumns:
    """Returns the declared columns of `table` with their types, in order, then the undeclared columns of its data."""
    declared = _declared(table)
    found = {field.name.lower(): field.dataType for field in inferred.schema}
    described = {column.name.lower(): column.description for column in table.columns}
    names = {name.lower(): name for name in (*inferred.schema.names, *declared)}
    declared_types = {name.lower(): data_type for name, data_type in declared.items()}
    order = [*declared_types, *(name for name in found if name not in declared_types)]
    columns = tuple(
        InferredColumn(
            names[key],
            type_text(declared_types.get(key) or found[key]),
            described.get(key, ""),
            _notes(table, inferred, key, declared_types.get(key), found.get(key)),
        )
        for key in order
    )
    keys = ("schema", "schema_file")
    return SourceColumns(
        table=table.full_name,
        format=table.format,
        columns=columns,
        looked_at=inferred.looked_at,
        empty=inferred.looked_at - len(inferred.by_file),
        files=inferred.files,
        is_fixed=not (inferred.by_file or has_own_columns(table)),
        replaces=next((key for key in keys if key in table.places), None),
        indent=max(table.location.column - 1 - len("name: "), 0),
    )


def _declared(table: SourceTable) -> Mapping[str, DataType]:
    if table.spark_schema is None:
        return {}
    if table.spark_schema.json is not None:
        schema: DataType = StructType.fromJson(json.loads(table.spark_schema.json))
    else:
        schema = DataType.fromDDL(table.spark_schema.ddl or "")
    return {field.name: field.dataType for field in schema} if isinstance(schema, StructType) else {}


def _notes(
    table: SourceTable, inferred: Inferred, key: str, declared: DataType | None, found: DataType | None
) -> tuple[str, ...]:
    if found is None:
        return ("none of the files read contains it",) if inferred.by_file else (f"{table.format} has no such column",)
    if declared is not None and has_own_columns(table) and type_text(found) != type_text(declared):
        return (f"declared type, but the table has {type_text(found)}",)
    notes = []
    if declared is not None and inferred.by_file:
        fits = text_fits if format_of(table.format).is_parsed else stored_fits
        has_pattern = any(name.lower() in ("timestampformat", "dateformat") for name in table.options)
        if not fits(found, declared) and not has_pattern:
            notes.append(f"declared type, but the files have {type_text(found)}")
    differing = _by_type(inferred, key)
    if len(differing) > 1:
        shown = ", ".join(f"{name} in {len(paths)}" for name, paths in differing.items())
        rare = min(differing.values(), key=len)[0].rsplit("/", 1)[-1]
        notes.append(f"files differ: {shown}, such as {rare}")
    return tuple(notes)


def _by_type(inferred: Inferred, key: str) -> Mapping[str, list[str]]:
    """Returns the files by type of a column, the most frequent type first."""
    types = [
        (type_text(field.dataType), path)
        for path, schema in inferred.by_file
        for field in schema
        if field.name.lower() == key
    ]
    counted = Counter(name for name, _ in types)
    return {name: [path for other, path in types if other == name] for name, _ in counted.most_common()}
