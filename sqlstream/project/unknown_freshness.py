"""The finding about a source whose freshness cannot be determined."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.values import SourceTable

FIELD_FIX = "set `loaded_at_field` to a column or expression with the time of a row"
"""The fix for a source that does not record times itself."""


def what_is_unknown(table: SourceTable) -> str:
    """Returns the message of the finding."""
    return f"the freshness of {table.described} cannot be determined"


def unknown(table: SourceTable, why: str, fix: str | None = None, location: Location | None = None) -> Finding:
    """Returns the finding, at `location` or the declaration of the table."""
    fix = fix or "fix the declaration of the source"
    return Finding("freshness-unknown", what_is_unknown(table), why, fix, location or table.location)


def only_streams(table: SourceTable) -> Finding:
    """Returns the finding for a source without a batch reader."""
    why = f"Spark can read the format {table.format} only as a stream, which has no newest row"
    return unknown(table, why, "remove `freshness`, or set it to null if the source inherits it")


def no_time(table: SourceTable) -> Finding:
    """Returns the finding for a source whose format records no time of its data."""
    why = f"sqlstream cannot see when the data of a source of format {table.format} changes"
    return unknown(table, why, FIELD_FIX)
