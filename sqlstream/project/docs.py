"""Docs blocks as values: named texts that descriptions include."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.location import Location

FOLDERS = ("models", "seeds", "macros", "sources", "sinks")
"""The folders whose Markdown files, at any depth, can contain docs blocks: as in dbt, those with resources."""

OVERVIEW = "__overview__"
"""The block that dbt shows on the first page of its documentation."""


@dataclass(frozen=True)
class DocsBlock:
    """One `{% docs name %}` block: its text without the white space around it, and the location of its tag."""

    name: str
    text: str
    location: Location
