"""`sqlstream source freshness`: compares the age of each source's newest data with its thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstream.app.freshness.without_spark import newest_without_spark
from sqlstream.app.loading.artifacts import write_sources
from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.running.signals import StopSignals, interruptible
from sqlstream.compiler.node_ids import source_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.freshness import Freshness
from sqlstream.project.values import SourceTable
from sqlstream.report.source_freshness import sources_artifact
from sqlstream.state.results.freshness import FreshnessResults, Measured, SourceFreshness

if TYPE_CHECKING:  # loads pyspark
    from sqlstream.app.freshness.with_spark import SparkClock

Clock = Callable[[], datetime]
"""Returns the current time (UTC)."""


@dataclass(frozen=True)
class FreshnessRequest:
    """The sources to check, and the file for the results (default: target/sources.json)."""

    project: ProjectRequest
    selection: Selection = EVERYTHING
    output_path: Path | None = None


@dataclass(frozen=True)
class FreshnessObserver:
    """Gets each check when it starts and when it ends, with its number and the number of all checks."""

    started: Callable[[int, int, str], None] = lambda _index, _total, _name: None
    ended: Callable[[int, int, SourceFreshness], None] = lambda _index, _total, _result: None
    warned: Callable[[Sequence[Finding]], None] = lambda _warnings: None


def check_freshness(
    request: FreshnessRequest,
    observer: FreshnessObserver = FreshnessObserver(),
    clock: Clock = lambda: datetime.now(UTC),
) -> FreshnessResults:
    """Returns the freshness of the selected sources that have a check, and writes it to a file in dbt's form.

    Starts Java only for sources that Python cannot check. A source that cannot be checked is a result, too.
    Raises: FindingsError if the project or the selection is invalid; UsageError; KeyboardInterrupt.
    """
    began = time.monotonic()
    loaded = load_for_reading(request.project)
    tables, warnings = _chosen(loaded, request.selection)
    observer.warned(warnings)
    with interruptible() as signals, closing(_Checks(loaded, tables, request.project, signals, clock)) as checks:
        found = []
        for index, table in enumerate(tables, 1):
            observer.started(index, len(tables), table.full_name)
            found.append(checks.check(table))
            observer.ended(index, len(tables), found[-1])
    call = loaded.invocation
    results = FreshnessResults(found, call.id, call.started_at, time.monotonic() - began)
    write_sources(loaded, sources_artifact(results, clock()), request.output_path)
    return results


def _chosen(loaded: Loaded, selection: Selection) -> tuple[list[SourceTable], tuple[Finding, ...]]:
    """Returns the selected tables with a check. Raises: FindingsError if there is none."""
    nodes, warnings = select(loaded.compiled, selection)
    chosen = set(nodes)
    project = loaded.compiled.project
    tables = [table for table in project.sources if source_id(project.name, table) in chosen]
    checked = [table for table in tables if table.freshness is not None]
    if not checked:
        raise FindingsError([*warnings, _nothing_to_check(project.sources, len(tables))])
    return checked, warnings


def _nothing_to_check(sources: Sequence[SourceTable], selected: int) -> Finding:
    others = [table.full_name for table in sources if table.freshness is not None]
    why = f"{selected} sources are selected, but none of them has `freshness` with a threshold"
    if selected < 2:
        why = "no source is selected" if not selected else "the selected source has no `freshness` with a threshold"
    fix = f"select one that has: source:{others[0]}" if others else _EXAMPLE
    return Finding("no-freshness", "there is no source whose freshness can be checked", why, fix)


_EXAMPLE = "add `freshness: {error_after: {count: 1, period: day}}` to a source or table"


class _Checks:
    """Checks one table after the other."""

    def __init__(
        self,
        loaded: Loaded,
        tables: Sequence[SourceTable],
        request: ProjectRequest,
        signals: StopSignals,
        clock: Clock,
    ) -> None:
        self._loaded, self._request, self._signals, self._clock = loaded, request, signals, clock
        self._ids = {table.full_name: source_id(loaded.compiled.project.name, table) for table in tables}
        self._spark: SparkClock | None = None

    def check(self, table: SourceTable) -> SourceFreshness:
        """Returns the result for one table."""
        freshness = table.freshness
        if freshness is None:
            raise ValueError(table.full_name)
        result = SourceFreshness(self._ids[table.full_name], table.full_name, freshness, self._clock(), 0)
        began = time.monotonic()
        try:
            result = replace(result, measured=Measured(self._newest(table, freshness), self._clock()))
        except FindingsError as error:
            result = replace(result, finding=error.findings[0])
        return replace(result, seconds=time.monotonic() - began)

    def close(self) -> None:
        """Stops Spark if it was needed."""
        if self._spark is not None:
            self._spark.close()

    def _newest(self, table: SourceTable, freshness: Freshness) -> datetime:
        newest = newest_without_spark(self._loaded, table)
        if newest is not None:
            return newest
        if self._spark is None:
            from sqlstream.app.freshness.with_spark import SparkClock  # loads pyspark

            nodes = tuple(self._ids.values())
            self._spark = SparkClock(self._loaded, nodes, self._request.env, self._request.notify, self._signals)
        return self._spark.newest(table, freshness)
