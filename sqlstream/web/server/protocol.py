"""What the server of the page needs from the project: plain values that become JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Json = Mapping[str, Any]


class UnknownQueryError(Exception):
    """There is no such target or query; the message is for the user."""


@dataclass(frozen=True)
class Span:
    """A part of a query's history: times in ms since 1970, both included. `names` are series, empty for all. `order` is
    `newest` or `slowest`, `before` the time (ms) at which a page of the newest goes on.
    """

    from_ms: int
    to_ms: int
    points: int = 800
    names: tuple[str, ...] = ()
    order: str = "newest"
    limit: int = 100
    before: int | None = None


class Follower(Protocol):
    """Follows the overview of one target for all browsers that look at it."""

    def changes(self) -> Json | None:
        """Returns what has changed since the last call, None if nothing has."""


class UiData(Protocol):
    """The data of the page. Methods may be called from several threads. `target` is None for that of the newest run.

    All methods with a `target` or `model` raise UnknownQueryError.
    """

    def project(self, target: str | None) -> Json:
        """Returns the project, its targets and its runs."""

    def overview(self, target: str | None) -> Json:
        """Returns the graph and all queries as they are now."""

    def follow(self, target: str | None) -> Follower:
        """Returns a follower of the overview."""

    def new_batches(self, target: str | None, model: str, after_ms: int) -> list[dict[str, Any]]:
        """Returns the batches of a query that began after a time (ms since 1970), the oldest first."""

    def query(self, target: str | None, model: str) -> Json:
        """Returns everything about one query that is not a time series."""

    def node(self, target: str | None, unique_id: str) -> Json:
        """Returns everything about one node of the graph that does not change with each batch."""

    def series(self, target: str | None, model: str, span: Span) -> Json:
        """Returns time series of a query."""

    def batches(self, target: str | None, model: str, span: Span) -> Json:
        """Returns batches of a query."""

    def events(self, target: str | None, model: str, span: Span) -> Json:
        """Returns what happened to a query."""

    def sample(self, target: str | None, model: str, limit: int) -> Json:
        """Returns rows of the output of a query."""

    def docs(self, target: str | None) -> str:
        """Returns the page of the documentation site, which loads `site_assets` of `web/site/page.py`."""

    def search(self, target: str | None) -> Json:
        """Returns what the search finds: `entries`."""

    def lineage(self, target: str | None, column: str) -> Json:
        """Returns the columns from which `model.column` comes."""
