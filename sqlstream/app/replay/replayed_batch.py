"""The result of a replay: the rows of a past batch on their way through a query."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.state.preview import ShownRows


@dataclass(frozen=True)
class ReplayedNode:
    """A source, view or model in a batch. `rows` are its first rows and `count` is their total number, both None if
    they are unknown; `note` then says why. `late_rows` counts the rows that the query of a model dropped behind the
    watermark, None if that is unknown.
    """

    kind: str
    name: str
    unique_id: str
    rows: ShownRows | None = None
    count: int | None = None
    note: str | None = None
    late_rows: int | None = None


@dataclass(frozen=True)
class Replayed:
    """A batch of a version of a query: its sources, views and model in the order in which rows pass through them.

    `planned_at` is its current_timestamp(), and `watermark` the watermark that it used (UTC, ISO 8601), None if there
    is none. `notes` say what differs from the batch that ran. `test` is the file and the name of the unit test that was
    written, and whether it passes. `failures` say why the batch fails: `nodes` then ends before the one that fails.
    """

    model: str
    version: int
    batch: int
    planned_at: str | None
    watermark: str | None
    nodes: tuple[ReplayedNode, ...]
    notes: tuple[str, ...] = ()
    test: tuple[str, str, bool] | None = None
    failures: tuple[Finding, ...] = ()
