"""Suggests a type for a name that Spark does not know."""

from __future__ import annotations

from sqlstream.project.nearest import did_you_mean
from sqlstream.project.types.types import ALIASES, PLAIN_NAMES

FOREIGN_NAMES = {
    **dict.fromkeys(("bool", "bit"), "boolean"),
    **dict.fromkeys(("str", "text", "uuid", "enum", "clob"), "string"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("datetime", "timestamptz", "timestamp_tz"), "timestamp"),
    **dict.fromkeys(("int64", "serial", "bigserial"), "bigint"),
    **dict.fromkeys(("json", "jsonb"), "variant"),
    **dict.fromkeys(("dict", "hash"), "map"),
    **dict.fromkeys(("object", "record", "row"), "struct"),
    **dict.fromkeys(("nvarchar", "varchar2"), "varchar"),
    "int32": "int",
    "int16": "smallint",
    "float64": "double",
    "float32": "float",
    "list": "array",
    "null": "void",
}
"""Names of types in other systems, with Spark's types."""

_FRACTIONS = frozenset({"number", "bignumeric", "money", "smallmoney"})
"""Names of types with decimal places in other systems. Spark's `decimal` without parameters has none."""

_KNOWN = (*PLAIN_NAMES, *ALIASES, "decimal", "numeric", "char", "varchar", "time", "array", "map", "struct")


def suggest_type(name: str) -> str:
    """Returns the fix for an unknown type."""
    if name.lower() in _FRACTIONS:
        return "did you mean `double` or `decimal(10,2)`?"
    type_name = FOREIGN_NAMES.get(name.lower())
    return f"did you mean `{type_name}`?" if type_name else did_you_mean(name, _KNOWN)
