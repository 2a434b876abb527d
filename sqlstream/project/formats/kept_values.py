"""Which values files keep exactly: one table of facts about formats and partition columns, and what decides from it.

`tests/spark/test_kept_values.py` writes odd values of every type with Spark and reads them back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.project.formats.format import TIME_PARSER
from sqlstream.project.formats.formats import FORMATS, format_of
from sqlstream.project.formats.option_types import is_fixed_zone
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct, type_name

SESSION_ZONE, PARQUET_TIMES = "spark.sql.session.timeZone", "spark.sql.parquet.outputTimestampType"
VALUE_SETTINGS = (SESSION_ZONE, PARQUET_TIMES, TIME_PARSER)
"""Spark's settings on which the values depend."""

CHANGED: Mapping[str, Mapping[str, str]] = {
    "csv": {
        "string": "empty text becomes null, spaces at the ends are cut, and a line break ends the row",
        "binary": "bytes become their text in brackets",
    },
    "json": {
        "variant": "a variant becomes JSON, which has fewer types",
        "map": "Spark writes keys of all types as text, and can read only text keys",
    },
    "text": {"string": "a line break in the text ends the row, and null becomes empty text"},
    "xml": {
        "string": "spaces at the ends and line ends are changed",
        "int": "Spark's XML reader reads -2147483648 as null",
        "bigint": "Spark's XML reader reads -9223372036854775808 as null",
        "variant": "a variant becomes text",
        "array": "empty arrays become null, and nulls in arrays are lost",
        "map": "keys become names of XML elements",
    },
}
"""The values that text formats change when Spark writes and reads them, by format and type."""

_EXACT_TIME = re.compile(r"S{6}")
_EXACT_OFFSET = re.compile(r"[Xx]{5}")
_PARTS_OF_DATE, _PARTS_OF_CLOCK = ("yyy", "M", "d"), ("H", "m", "s")
_QUOTED = re.compile(r"'[^']*'")
_MAY_BE = {
    "boolean": re.compile(r"(?i)true|false"),
    "time": re.compile(r"[+-]?\d{4}.*"),
    "interval": re.compile(r"(?i)interval .*"),
    "number": re.compile(r"(?i)[+-]?(\.?\d.*|nan|inf.*)"),
}
"""The texts that may be values of some types."""

_UNICODE = re.compile(r"utf-?(8|16|16[bl]e|32)", re.IGNORECASE)


@dataclass(frozen=True)
class FileFacts:
    """What decides how values are written: the format, the options of the sink (names in lower case), and the settings
    of the target.
    """

    format: str
    options: Mapping[str, str]
    settings: Mapping[str, str]

    @property
    def zone(self) -> str:
        """The time zone of times as text."""
        parsed = self.options.get("timezone") if format_of(self.format).is_parsed else None
        return parsed or self.session_zone

    @property
    def session_zone(self) -> str:
        """The time zone of the session."""
        return self.settings.get(SESSION_ZONE) or "UTC"

    def option(self, name: str) -> str:
        """Returns what Spark's writer gets for an option; empty for Spark's own default."""
        given = format_of(self.format).writer_options(self.options, self.settings.get(TIME_PARSER, ""))
        return next((value for option, value in given.items() if option.lower() == name.lower()), "")


def changed_value(facts: FileFacts, type_: DataType) -> str | None:
    """Returns how files change values of a type, as a sentence without a capital; None if they keep all of them."""
    reason = _changed_here(facts, type_)
    if reason is not None:
        return reason
    parts: tuple[DataType, ...] = ()
    if isinstance(type_, Array):
        parts = (type_.element,)
    elif isinstance(type_, Map):
        parts = (type_.key, type_.value)
    elif isinstance(type_, Struct):
        parts = tuple(field.type for field in type_.fields)
    return next((found for part in parts if (found := changed_value(facts, part)) is not None), None)


def _changed_here(facts: FileFacts, type_: DataType) -> str | None:
    name = _stored_name(type_)
    if not format_of(facts.format).is_parsed and facts.format != "text":
        return _changed_by_parquet(facts, name)
    if name.startswith("timestamp"):
        return _changed_time(facts, name) or _changed_by_options(facts, name)
    if facts.format == "xml" and name == "string" and facts.option("ignoreSurroundingSpaces").lower() == "false":
        return None
    if facts.format == "json" and isinstance(type_, Map):
        return CHANGED["json"]["map"] if _stored_name(type_.key) != "string" else None
    known = CHANGED.get(facts.format, {}).get(name)
    return known or _changed_by_options(facts, name)


def _changed_by_parquet(facts: FileFacts, name: str) -> str | None:
    cuts = facts.format == "parquet" and facts.settings.get(PARQUET_TIMES, "").upper() == "TIMESTAMP_MILLIS"
    return f"{PARQUET_TIMES} cuts times to milliseconds" if cuts and name == "timestamp" else None


def _changed_by_options(facts: FileFacts, name: str) -> str | None:
    encoding = facts.option("encoding") or facts.option("charset")
    if name == "string" and encoding and not _UNICODE.fullmatch(encoding):
        return f"{encoding} has no code for most characters"
    null = facts.option("nullValue")
    if null and _may_be(null, name):
        return f"the value {null} becomes null, because of nullValue"
    pattern = facts.option("dateFormat")
    if name == "date" and pattern and not _has(pattern, _PARTS_OF_DATE):
        return f"dateFormat {pattern} has no year of four digits, month and day"
    return None


def _may_be(text: str, name: str) -> bool:
    """Returns whether a text can be a value of a type."""
    if name in ("string", "binary"):
        return True
    if name in ("array", "map", "struct", "void", "variant"):
        return False
    kind = "time" if name.startswith(("date", "time")) else name.partition(" ")[0]
    return _MAY_BE.get(kind, _MAY_BE["number"]).fullmatch(text) is not None


def _changed_time(facts: FileFacts, name: str) -> str | None:
    option = "timestampNTZFormat" if name == "timestamp_ntz" else "timestampFormat"
    pattern = facts.option(option)
    if not pattern:
        return f"{option} is Spark's own, which cuts times to milliseconds, because of {TIME_PARSER}"
    bare = _QUOTED.sub("", pattern)
    if not (_has(pattern, (*_PARTS_OF_DATE, *_PARTS_OF_CLOCK)) and _EXACT_TIME.search(bare)):
        return f"{option} {pattern} cuts times: it needs the date, HH:mm:ss and six digits, SSSSSS"
    if name == "timestamp" and not (is_fixed_zone(facts.zone) or _EXACT_OFFSET.search(bare)):
        return f"{option} {pattern} has no offset with seconds, XXXXX, and in {facts.zone} a local time can occur twice"
    return None


def _has(pattern: str, parts: tuple[str, ...]) -> bool:
    bare = _QUOTED.sub("", pattern)
    return all(part in bare for part in parts) and "G" not in bare


def changed_partition(facts: FileFacts, type_: DataType) -> str | None:
    """Returns how names of folders change values of a type; None if they keep all of them.

    Text is kept but for empty text, which the writer of a stored model refuses.
    """
    name = _stored_name(type_)
    if name == "binary":
        return "bytes become text in the names of folders"
    if name == "timestamp" and not is_fixed_zone(facts.session_zone):
        return (
            f"names of folders have local times of {facts.session_zone}, where an hour occurs twice when clocks go back"
        )
    return None


def _stored_name(type_: DataType) -> str:
    name = type_name(type_)
    return "string" if isinstance(type_, Primitive) and name in ("char", "varchar") else name


def kept_rows() -> tuple[tuple[tuple[str, ...], str], ...]:
    """Returns the table for the documentation: formats, and what they change."""
    changed = [
        ((name,), "; ".join(f"`{type_}`: {how}" for type_, how in types.items())) for name, types in CHANGED.items()
    ]
    others = tuple(name for name, each in FORMATS.items() if each.keeps_columns and each.writes and name not in CHANGED)
    return (*changed, (others, "nothing"))
