"""Explains Spark's refusal to use existing state for a changed query."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.spark.jvm.gateway import causes_of
from sqlstream.state.refusals import refresh_text

PARTS = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": ("key", "storedKeySchema", "newKeySchema"),
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": ("value", "storedValueSchema", "newValueSchema"),
    "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION": ("value", "oldValueSchema", "newValueSchema"),
}
"""Error conditions of Spark 4.3 for state with other columns than the query: key or value, and the message parameters
with the old and the new schema.
"""


def schema_finding(model: str, what: str, error: BaseException, location: Location) -> Finding | None:
    """Returns the finding if `error`, which ended the query of `model`, means that the columns of its state do not
    match the query; None for other errors.
    """
    for cause in causes_of(error):
        if cause.condition in PARTS:
            part, before, after = PARTS[cause.condition]
            schemas = cause.parameters
            return Finding(
                "state-change",
                f"{what}: Spark cannot use the existing state for the changed query",
                f"the {part} columns of the state are {_columns(schemas.get(before, ''))}, but those of the "
                f"query are now {_columns(schemas.get(after, ''))}",
                f"undo the change: the checkpoint and its ledger are unchanged; or {refresh_text(model)}",
                location,
            )
    return None


def _columns(schema: str) -> str:
    """Returns the names and types of the columns in the text of a Scala StructType."""
    return ", ".join(_outer_fields(schema)) or "others"


def _outer_fields(schema: str) -> Iterator[str]:
    """Yields `name type` for each top-level field of `StructType(StructField(name,type,nullable),...)`."""
    depth, start = 0, 0
    for index, letter in enumerate(schema):
        depth += (letter == "(") - (letter == ")")
        if letter == "(" and depth == 2:
            start = index + 1
        elif letter == ")" and depth == 1:
            name, _, rest = schema[start:index].partition(",")
            yield f"{name} {rest.rpartition(',')[0].partition('(')[0].removesuffix('Type').lower()}"
