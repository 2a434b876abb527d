"""State that Spark cannot use for a changed query: its refusal, in the user's words."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import PySparkException

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.spark.jvm.gateway import causes_of
from sqlstream.state.refusals import refresh_text

PARTS = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": ("key", "storedKeySchema", "newKeySchema"),
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": ("value", "storedValueSchema", "newValueSchema"),
    "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION": ("value", "oldValueSchema", "newValueSchema"),
}
"""Conditions of Spark 4.3 for state with other columns than the query's: what they are of, and the parameters that
hold the schemas before and after.
"""


def schema_finding(model: str, what: str, error: BaseException, location: Location) -> Finding | None:
    """Returns the finding for `error`, with which the query of `model` has failed, where Spark cannot use the state for
    the columns that the query has now; None for other errors.
    """
    for cause in causes_of(error):
        condition = cause.getCondition() if isinstance(cause, PySparkException) else None
        if isinstance(cause, PySparkException) and condition in PARTS:
            part, before, after = PARTS[condition]
            schemas = cause.getMessageParameters() or {}
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
    """The names and types of the columns in the text of a Scala StructType."""
    return ", ".join(_outer_fields(schema)) or "others"


def _outer_fields(schema: str) -> Iterator[str]:
    """Gives `name type` for each field of `StructType(StructField(name,type,nullable),...)`, as short as can be."""
    depth, start = 0, 0
    for index, letter in enumerate(schema):
        if letter == "(":
            depth += 1
            start = index + 1 if depth == 2 else start
        elif letter == ")":
            if depth == 2:
                name, _, rest = schema[start:index].partition(",")
                yield f"{name} {rest.rpartition(',')[0].partition('(')[0].removesuffix('Type').lower()}"
            depth -= 1
