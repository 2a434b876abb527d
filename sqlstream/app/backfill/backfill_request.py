"""What to backfill, and how run_results.json records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlstream.app.records.arguments import project_arguments
from sqlstream.app.request import ProjectRequest
from sqlstream.state.backfill.ranges import TimeRange


@dataclass(frozen=True)
class BackfillRequest:
    """The history of a model to write, from `since` (inclusive) to `until` (exclusive), None for no limit. With
    `dry_run`, nothing is written. With `only_complete`, only an interrupted backfill is completed.
    """

    project: ProjectRequest
    model: str
    since: datetime | None = None
    until: datetime | None = None
    dry_run: bool = False
    only_complete: bool = False

    @property
    def times(self) -> TimeRange:
        """The range in ms since 1970."""
        return TimeRange(_milliseconds(self.since), _milliseconds(self.until))


def backfill_arguments(request: BackfillRequest) -> dict[str, Any]:
    """Returns the arguments of `backfill` as run_results.json records them."""
    since, until = (None if each is None else each.isoformat() for each in (request.since, request.until))
    return {
        "which": "backfill",
        **project_arguments(request.project),
        "model": request.model,
        "from": since,
        "to": until,
        "full_range": not request.only_complete and since is None and until is None,
    }


def read_backfill(arguments: Mapping[str, Any], project: ProjectRequest) -> BackfillRequest:
    """Returns the request of a recorded `backfill`. Raises: KeyError, TypeError, ValueError for other arguments."""
    since, until = (
        None if arguments[name] is None else datetime.fromisoformat(arguments[name]) for name in ("from", "to")
    )
    only_complete = since is None and until is None and not arguments["full_range"]
    return BackfillRequest(project, str(arguments["model"]), since, until, only_complete=only_complete)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
