"""Which texts Spark surely cannot cast: with ANSI on, such a cast stops the query.

What `UTF8String.toLong`, `Cast`, `SparkDateTimeUtils` and `StringUtils` of Spark 4.3 take;
`tests/spark/test_text_casts.py` asks Spark.
"""

from __future__ import annotations

import re
from datetime import date

from sqlstream.compiler.flow.types.families import DATETIME, NUMBER, family
from sqlstream.compiler.flow.types.values import DIGITS, kind
from sqlstream.project.types.time_zones import may_be_zone
from sqlstream.project.types.types import DataType

_BLANKS = " \t\n\r\f\v\0"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(
    r"""[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?[df]?|inf(?:inity)?|0x[0-9a-f.]+p[+-]?[0-9]+[df]?)|nan""",
    re.IGNORECASE,
)
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_SPECIAL_TIME = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)(?:\s+(?P<zone>.*))?", re.IGNORECASE)
_DAY = re.compile(r"[+-]?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[^0-9].*)?)?)?", re.DOTALL)
_TIME_OF_DAY = re.compile(r"T?[0-9]{1,2}:.*", re.IGNORECASE)
_YEARS = range(1, 10_000)
"""The years that Python's calendar has."""


def cannot_be_cast(text: str, target: DataType | None) -> bool:
    """Returns whether Spark surely refuses to cast `text` to `target`; what is not known may be cast."""
    text = text.strip(_BLANKS)
    group = family(target)
    if group == NUMBER and text.isascii():  # Java's decimals take the digits of other scripts
        return (_WHOLE if kind(target) in DIGITS else _FRACTION).fullmatch(text) is None
    if group == DATETIME:
        return _is_no_time(text, takes_time_of_day=kind(target) == "timestamp")
    return group == "boolean" and text.lower() not in _BOOLEANS


def _is_no_time(text: str, *, takes_time_of_day: bool) -> bool:
    special = _SPECIAL_TIME.fullmatch(text)
    if special is not None:
        return special["zone"] is not None and not may_be_zone(special["zone"])
    if takes_time_of_day and _TIME_OF_DAY.fullmatch(text):
        return False
    found = _DAY.fullmatch(text)
    if found is None:
        return True
    year, month, day = (int(part or 1) for part in found.groups())
    if year not in _YEARS:
        return False
    try:
        date(year, month, day)
    except ValueError:
        return True
    return False
