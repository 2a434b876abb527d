"""Options of Delta Lake and Iceberg that need, exclude or replace each other (`tests/spark/test_lake_options.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.rules.options.given import GivenOptions
from sqlstream.errors import Finding
from sqlstream.project.wording import quoted

EXCLUDING = {
    "delta": (("startingVersion", "startingTimestamp"), ("versionAsOf", "timestampAsOf")),
    "iceberg": (
        ("versionAsOf", "timestampAsOf"),
        *((newer, "branch") for newer in ("versionAsOf", "timestampAsOf")),
        *((time, "start-snapshot-id") for time in ("start-timestamp", "end-timestamp")),
    ),
}
"""Pairs of options of a source of which the format takes only one."""

REPLACED = {"snapshot-id": "versionAsOf", "tag": "versionAsOf", "as-of-timestamp": "timestampAsOf"}
"""The options that Iceberg refuses since Spark has its own, and those of Spark."""


def lake_problems(given: GivenOptions) -> Iterator[Finding]:
    """Yields the conflicts between the options of a source."""
    if not given.is_source:
        return
    for one, other in EXCLUDING[given.format.name]:
        if given.has(one) and given.has(other):
            yield Finding(
                "option-value",
                f"{given.what} sets both {one} and {other}",
                f"both choose which rows to read, and {given.format.name} supports only one of them",
                "remove one of them",
                given.place(other),
            )
    yield from _delta_changes(given) if given.format.name == "delta" else _replaced(given)
    if given.has("end-snapshot-id") and not given.has("start-snapshot-id"):
        yield Finding(
            "missing-key",
            f"{given.what} sets end-snapshot-id without start-snapshot-id",
            "Iceberg reads the rows that were added between two snapshots",
            "add start-snapshot-id, or use versionAsOf to read the table as it was",
            given.place("end-snapshot-id"),
        )


def _delta_changes(given: GivenOptions) -> Iterator[Finding]:
    """Yields a problem for a static table that reads changes from no version on; a stream has a default."""
    reads = next((name for name in ("readChangeFeed", "readChangeData") if given.text(name).lower() == "true"), None)
    if reads is None or given.streams or given.has("startingVersion") or given.has("startingTimestamp"):
        return
    yield Finding(
        "missing-key",
        f"{given.what} sets {reads} without startingVersion or startingTimestamp",
        "Delta needs a version or a time from which to read the changes of a static table",
        "add startingVersion, for example startingVersion: 0",
        given.place(reads),
    )


def _replaced(given: GivenOptions) -> Iterator[Finding]:
    for old, new in REPLACED.items():
        if given.has(old):
            yield Finding(
                "option-value",
                f"{given.what} sets the option {quoted(old)}, which Iceberg no longer supports",
                f"Iceberg refuses to read the table, because Spark's option {new} replaces this one",
                f"use {new}"
                + (", with a time such as 2024-01-31T00:00:00" if new == "timestampAsOf" else "")
                + (", and mode: batch" if given.streams else ""),
                given.place(old),
            )
