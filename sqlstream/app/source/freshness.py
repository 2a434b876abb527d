"""`sqlstream source freshness`: compares the age of each source's newest data with its thresholds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstream.app.loading.artifacts import write_sources
from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.session.signals import StopSignals, interruptible
from sqlstream.app.source.freshness_result import NEVER, FreshnessResults, Measured, SourceFreshness, sources_artifact
from sqlstream.app.stored.local_sources import files_at, has_local_files, is_local
from sqlstream.compiler.graph import source_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.freshness import Freshness
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.format import STREAMS
from sqlstream.project.formats.formats import format_of
from sqlstream.project.unknown_freshness import no_time, only_streams, unknown
from sqlstream.project.values import SourceTable
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.output_files import StoredFile
from sqlstream.state.sources.source_files import FileChoice, file_choice, last_rows_added

if TYPE_CHECKING:  # loads pyspark
    from sqlstream.app.source.freshness_with_spark import SparkClock


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
            from sqlstream.app.source.freshness_with_spark import SparkClock  # loads pyspark

            nodes = tuple(self._ids.values())
            self._spark = SparkClock(self._loaded, nodes, self._request.env, self._request.notify, self._signals)
        return self._spark.newest(table, freshness)


_SPARK_FILTERS = frozenset({"modifiedafter", "modifiedbefore"})
"""Options of static tables that choose files by their time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def newest_without_spark(loaded: Loaded, table: SourceTable) -> datetime | None:
    """Returns the time of the newest data of `table`, `NEVER` without data, None if only Spark can find it.

    Raises: FindingsError if the time cannot be known.
    """
    freshness, known = table.freshness, format_of(table.format)
    if known.reads == STREAMS:
        raise FindingsError([only_streams(table)])
    if freshness is None or table.loaded_at_field is not None:
        return None
    if not (known.is_file or known.is_table or known.name == "kafka"):
        raise FindingsError([no_time(table)])
    project = loaded.compiled.project
    if not (is_local(table) and has_local_files(project.target)):
        return None
    path = plain_path(str(project.root), table.path or "")
    try:
        return _newest_commit(table, path) if known.is_table else _newest_file(table, path, project.root)
    except (OSError, json.JSONDecodeError) as error:
        reason = getattr(error, "strerror", None)
        why, place = f"{path}: {reason.lower()}" if reason else str(error), table.locations.get("path")
        raise FindingsError([unknown(table, why, "fix `path`, or make its files readable", place)]) from error


def time_of(milliseconds: int | None) -> datetime:
    """Returns a time in milliseconds since 1970 as UTC, `NEVER` for None."""
    return NEVER if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)


def _newest_commit(table: SourceTable, path: str) -> datetime | None:
    if table.format != "delta":
        return None
    return time_of(last_rows_added(LocalStorage(), path, changes=table.reads_changes))


def _newest_file(table: SourceTable, path: str, root: Path) -> datetime | None:
    choice = _choice(table)
    if choice is None:
        return None
    found = files_at(path, choice, root)
    if found is None:
        raise FileNotFoundError(f"{path} does not exist")
    return time_of(_newest(found))


def _newest(files: Sequence[StoredFile]) -> int | None:
    return max((file.modified for file in files), default=None)


def _choice(table: SourceTable) -> FileChoice | None:
    options = {name: value for name, value in table.options.items() if isinstance(value, str)}
    if _SPARK_FILTERS & {name.lower() for name in options}:
        return None
    return file_choice({name: value for name, value in options.items() if name.lower() != "basepath"})
