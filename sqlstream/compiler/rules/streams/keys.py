"""Rules on types that Spark's state stores cannot use as a key."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import Aggregate
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import rule
from sqlstream.project.types.types import Array, DataType, Primitive, Struct

UNEQUAL_BYTES = ("_LCASE", "_CI", "_AI", "_RTRIM")
"""Parts of the names of collations under which texts of different bytes are equal."""


@rule("type-mismatch")
def collated_keys(query: Query) -> Iterator[QueryProblem]:
    """A state store compares the bytes of keys, so equal keys must have equal bytes
    (STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY).
    """
    for node in query.all(Aggregate):
        for key in node.keys if node.streaming else ():
            collation = _collation(key.column.type)
            if collation is not None:
                yield QueryProblem(
                    key.where,
                    "type-mismatch",
                    f"`{key.text}` has the collation {collation}, so a stream cannot be grouped by it",
                    "Spark looks up keys in the state by their bytes, and under this collation equal texts can "
                    "have different bytes",
                    f"group by lower({key.text}), or by {key.text} collate UTF8_BINARY",
                )


def _collation(type_: DataType | None) -> str | None:
    """The first collation in a type under which texts of different bytes are equal."""
    if isinstance(type_, Primitive) and type_.collation:
        return type_.collation if any(part in type_.collation.upper() for part in UNEQUAL_BYTES) else None
    parts: list[DataType] = []
    if isinstance(type_, Array):
        parts = [type_.element]
    elif isinstance(type_, Struct):
        parts = [field.type for field in type_.fields]
    return next((found for found in map(_collation, parts) if found is not None), None)


RULES = (collated_keys,)
