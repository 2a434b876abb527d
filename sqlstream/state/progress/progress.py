"""The progress of a query: where the versions are that a run continues, and how much each has not read yet."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.state.progress.lag import Lag
from sqlstream.state.progress.positions import SourcePosition, VersionPosition


@dataclass(frozen=True)
class SourceProgress:
    """A source of a version, and its lag; None if it is unknown. `problem` then says why, if there is a reason that a
    user can change.
    """

    position: SourcePosition
    lag: Lag | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The source or stored model as `<namespace>.<table>`, or the name or position in the checkpoint."""
        use = self.position.use
        return use.table if use is not None else f"source {self.position.key}"


@dataclass(frozen=True)
class VersionProgress:
    """A version of a query with the progress of each source. `is_parallel`: it runs beside the current one.
    `is_previous`: it was the current one before, and a process still runs it.

    `holder` is the process that has locked the version, None if there is none.
    """

    position: VersionPosition
    sources: tuple[SourceProgress, ...] = ()
    is_parallel: bool = False
    holder: str | None = None
    is_previous: bool = False


@dataclass(frozen=True)
class QueryProgress:
    """A query according to its storage: the `stored` versions in order, and those that a run continues, each with its
    own offsets and watermark: the current one, the one that runs beside it, and the previous one if it still runs.

    `problem` says in one line why the storage could not be read.
    """

    model: str
    unique_id: str
    root: str
    stored: tuple[int, ...] = ()
    versions: tuple[VersionProgress, ...] = ()
    problem: str | None = None

    @property
    def is_started(self) -> bool:
        """Whether the storage has a version of the query."""
        return bool(self.stored)

    @property
    def parallel_seconds(self) -> float | None:
        """How far the watermark of the parallel version is behind that of the current one, in seconds; None if one of
        them is unknown.
        """
        current, beside = (
            next((each.position.watermark_ms for each in self.versions if each.is_parallel is kind), None)
            for kind in (False, True)
        )
        return None if current is None or beside is None else (current - beside) / 1000
