"""Which row and which file made a query fail, and the SQL that failed on it, as far as an error of Spark has them.

Spark passes an exception of an executor on with its error condition and parameters. One that Java cannot serialize
arrives only as the text of another exception, whose forms are in `_FORMS`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from sqlstream.errors import Failure
from sqlstream.spark.jvm.errors import fragment_of
from sqlstream.spark.jvm.gateway import Cause, causes_of
from sqlstream.spark.reading.corrupt_errors import (
    CorruptMessage,
    RefusedRecord,
    ViolatingRows,
    plain_file,
    read_corrupt_record,
)
from sqlstream.spark.secrets import Secrets

VALUES = {
    "CAST_INVALID_INPUT": "expression",
    "CAST_OVERFLOW": "value",
    "CONVERSION_INVALID_INPUT": "str",
    "INVALID_ARRAY_INDEX": "indexValue",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "indexValue",
    "INVALID_FRACTION_OF_SECOND": "secAndMicros",
    "NUMERIC_VALUE_OUT_OF_RANGE": "value",
}
"""The message parameter with the value, by the error condition or the one above it
(https://spark.apache.org/docs/latest/sql-error-conditions.html).
"""

FILES = {"FAILED_READ_FILE": "path"}
ROWS = {"MALFORMED_RECORD_IN_PARSING": "badRecord"}
"""The same for the file and the row."""

MOST_CHARACTERS = 4_000
"""The part of a message that is searched: the forms need time that grows faster than the text."""

logger = logging.getLogger("sqlstream.failures")

_FORMS = {
    "value": (
        re.compile(r'\[CAST_(?:INVALID_INPUT|OVERFLOW)\] The value (?P<found>.+?) of the type "[^"]+" cannot be cast'),
        re.compile(r"\[CONVERSION_INVALID_INPUT\] The value (?P<found>.+?) \("),
        re.compile(r"\[INVALID_ARRAY_INDEX(?:_IN_ELEMENT_AT)?\] The index (?P<found>-?\d+) is out of bounds"),
        re.compile(r"\[CANNOT_PARSE_TIMESTAMP\] Text (?P<found>'.*') could not be parsed"),
        re.compile(r"(?m)^(?:[\w.$]+: )*For input string: (?P<found>\".*\")"),
        re.compile(r"(?m)^(?:[\w.$]+: )*Text (?P<found>'.*') could not be parsed"),
    ),
    "file": (
        re.compile(r"\[FAILED_READ_FILE\.\w+\] Encountered error while reading file (?P<found>.+?)\.(?:\s|$)"),
        re.compile(r"(?<!\S)(?P<found>[a-z][\w+.-]{0,15}:/\S+) is not a Parquet file"),
    ),
    "row": (re.compile(r"(?m)Malformed records are detected in record parsing: (?P<found>.+?)\.?\s*$"),),
}
"""The forms of the messages of Spark and Java that name a value, a file or a row."""


def failure_of_input(error: BaseException, batch: int | None, secrets: Secrets) -> Failure:
    """Returns where a query failed with `error` in `batch`, as far as it is known. Raises nothing: Spark's error must
    reach the user.
    """
    try:
        return _failure(error, batch, secrets)
    except Exception:
        logger.exception("The row and the file of a failure are not known")
        return Failure(batch)


def _failure(error: BaseException, batch: int | None, secrets: Secrets) -> Failure:
    causes, record = causes_of(error), read_corrupt_record(error)
    found = {"sql": fragment_of(error)[1]}
    if isinstance(record, ViolatingRows):
        found["row"] = record.rows[0]
    elif isinstance(record, CorruptMessage):
        found["position"] = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
    elif isinstance(record, RefusedRecord):
        found["file" if "/" in record.place else "position"] = record.place
    else:
        found["value"] = _parameter(causes, VALUES) or _in_messages(causes, "value")
        found["file"] = plain_file(_parameter(causes, FILES) or _in_messages(causes, "file"))
        found["row"] = _parameter(causes, ROWS) or _in_messages(causes, "row")
    return Failure(batch, **{name: secrets.redact(text) or None for name, text in found.items()})


def _parameter(causes: Sequence[Cause], parameters: Mapping[str, str]) -> str:
    """Returns the parameter of the innermost cause that has one of `parameters`, empty if none has."""
    for cause in reversed(causes):
        condition = cause.condition or ""
        name = parameters.get(condition) or parameters.get(condition.partition(".")[0], "")
        if cause.parameters.get(name):
            return cause.parameters[name]
    return ""


def _in_messages(causes: Sequence[Cause], part: str) -> str:
    """Returns the part of the messages without parameters that is in one of its forms, empty if none is."""
    texts = [cause.message[:MOST_CHARACTERS] for cause in reversed(causes) if not cause.parameters]
    matches = (form.search(text) for text in texts for form in _FORMS[part])
    return next((match["found"] for match in matches if match is not None), "")
