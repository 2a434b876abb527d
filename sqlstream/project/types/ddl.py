"""Spark's data types as DDL that Spark can parse, whichever characters their names have."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.project.types.types import Array, DataType, Field, Map, Struct


def type_ddl(kind: DataType) -> str:
    """Returns a type as DDL: ``struct<`a b`: array<int>>``. Spark reads all fields as nullable."""
    if isinstance(kind, Array):
        return f"array<{type_ddl(kind.element)}>"
    if isinstance(kind, Map):
        return f"map<{type_ddl(kind.key)}, {type_ddl(kind.value)}>"
    if isinstance(kind, Struct):
        return f"struct<{', '.join(f'{_quoted(field.name)}: {type_ddl(field.type)}' for field in kind.fields)}>"
    return str(kind)


def columns_ddl(fields: Sequence[Field]) -> str:
    """Returns the columns of a schema as DDL."""
    return ", ".join(f"{_quoted(field.name)} {type_ddl(field.type)}" for field in fields)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
