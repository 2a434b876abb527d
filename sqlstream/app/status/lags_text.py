"""The progress of queries according to their checkpoints, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlstream.numbers import bytes_text, count_text, epoch_text, long_seconds_text, plural
from sqlstream.report.run_text import time_text
from sqlstream.report.table import fit_table
from sqlstream.state.batch_logs import DELTA, FILES, KAFKA
from sqlstream.state.sources.lag import FileLag, Lag, QueryProgress, SourceProgress, VersionLag, VersionProgress
from sqlstream.state.sources.positions import SourcePosition

WIDTH = 100
"""The maximal width of a table, in characters."""


def progress_texts(queries: Sequence[QueryProgress], now: datetime, width: int | None) -> list[str]:
    """Returns a text for each query that has started or cannot be read, and one line for the others. `now` has a time
    zone. `width` is that of the terminal, None for no limit.
    """
    texts = [_query_text(query, now, min(width or WIDTH, WIDTH)) for query in queries if query.is_started]
    texts += [f"{query.model}: {query.problem}" for query in queries if query.problem]
    waiting = [query.model for query in queries if not query.is_started and not query.problem]
    return [*texts, f"not started: {', '.join(waiting)}"] if waiting else texts


def _query_text(query: QueryProgress, now: datetime, width: int) -> str:
    holder = next((version.holder for version in query.versions if not version.is_parallel), None)
    lines = [f"{query.model}: in use by {holder}" if holder else f"{query.model}: not running"]
    for version in query.versions:
        lines += _version_lines(query, version, now, width)
    return "\n".join(lines)


def _version_lines(query: QueryProgress, version: VersionProgress, now: datetime, width: int) -> Iterator[str]:
    position = version.position
    since = f" since {time_text(position.since)} UTC" if position.since else ""
    if version.is_parallel:
        user = f"in use by {version.holder}" if version.holder else "not running"
        yield ""
        yield f"version {position.version}{since}, in parallel with the current one: {user}"
    elif version.is_previous:
        yield ""
        yield f"version {position.version}{since}, the previous one: still in use by {version.holder}"
    else:
        stored = f" (stored: {', '.join(map(str, query.stored))})" if query.stored[1:] else ""
        yield f"version {position.version}{since}{stored}"
    yield ", ".join(_batch_parts(version, now))
    if position.watermark_ms is not None:
        at = position.watermark_ms / 1000
        behind = now.timestamp() - at
        distance = f"{long_seconds_text(abs(behind))} {'behind' if behind >= 0 else 'ahead of'} the current time"
        yield f"watermark {time_text(epoch_text(at))} UTC, {distance}{_beside(query, version)}"
    if position.problem:
        yield position.problem
    if version.sources:
        yield ""
        yield _sources_table(version.sources, width)
    yield from (f"{source.name}: {source.problem}" for source in version.sources if source.problem)
    if version.quarantined_rows:
        show = f"see `sqlstream quarantine show {query.model}`"
        yield f"{plural(version.quarantined_rows, 'row')} in quarantine; {show}"
    for sink in version.sinks:
        if sink.small is not None:
            yield f"sink {sink.small.sink}: {sink.small.text}; {sink.small.advice}"
        if sink.log is not None:
            merge = "; `sqlstream maintain --merge-files` makes it shorter" if sink.can_merge else ""
            yield f"sink {sink.log.sink}: {sink.log.text}{merge}"


def _beside(query: QueryProgress, version: VersionProgress) -> str:
    """Returns how far the watermark of a parallel version is behind that of the current one."""
    seconds = query.parallel_seconds
    if not version.is_parallel or seconds is None:
        return ""
    other = query.versions[0].position.version
    if seconds == 0:
        return f", as far as version {other}"
    return f", {long_seconds_text(abs(seconds))} {'behind' if seconds > 0 else 'ahead of'} version {other}"


def _batch_parts(version: VersionProgress, now: datetime) -> Iterator[str]:
    position = version.position
    if position.batch is None:
        yield "no batch committed"
    else:
        yield f"batch {position.batch} committed{_ago(position.committed_at, now)}"
    if position.open_batch is not None:
        yield f"batch {position.open_batch} begun{_ago(position.open_since, now)} and not committed"


def _ago(at: float | None, now: datetime) -> str:
    return "" if at is None else f" {long_seconds_text(max(now.timestamp() - at, 0.0))} ago"


def _sources_table(sources: Sequence[SourceProgress], width: int) -> str:
    names = [source.name for source in sources]
    rows = [
        (
            source.name if names.count(source.name) == 1 else f"{source.name} ({source.position.key})",
            lag_text(source.lag),
            offset_text(source.position),
        )
        for source in sources
    ]
    return fit_table(("source", "lag", "offset"), rows, (), width)[0]


def offset_text(position: SourcePosition) -> str:
    """Returns an offset in words, as JSON if its form is unknown, and `-` if there is none."""
    offset = position.offset
    if offset is None:
        return "-"
    if position.form == FILES:
        read = "" if position.read is None else f", {plural(len(position.read), 'file')} read"
        return f"log entry {count_text(offset['logOffset'])}{read}"
    if position.form == KAFKA:
        partitions = [value for topic in offset.values() for value in topic.values()]
        return f"{count_text(sum(partitions))} in {plural(len(partitions), 'partition')}"
    if position.form == DELTA:
        version, index = offset["reservoirVersion"], offset.get("index", -1)
        return f"before version {version}" if index < 0 else f"version {version}, file {index}"
    return json.dumps(offset, separators=(",", ":"))


def lag_text(lag: Lag | None) -> str:
    """Returns a lag with its unit, and `-` if it is unknown."""
    if lag is None:
        return "-"
    if isinstance(lag, FileLag):
        too_old = f", {lag.too_old:,} too old" if lag.too_old else ""
        return plural(lag.files, "file") + (f", {bytes_text(lag.bytes)}" if lag.files else "") + too_old
    return plural(lag.versions, "version") if isinstance(lag, VersionLag) else plural(lag.records, "record")


def progress_json(queries: Sequence[QueryProgress], now: datetime) -> list[dict[str, Any]]:
    """Returns the progress of each query as plain values. Times are UTC in ISO 8601."""
    return [
        {
            "model": query.model,
            "unique_id": query.unique_id,
            "started": query.is_started,
            "root": query.root,
            "problem": query.problem,
            "stored_versions": list(query.stored),
            "versions": [_version_json(version, now) for version in query.versions],
        }
        for query in queries
    ]


def _version_json(version: VersionProgress, now: datetime) -> Mapping[str, Any]:
    position = version.position
    watermark = None if position.watermark_ms is None else position.watermark_ms / 1000
    return {
        "version": position.version,
        "parallel": version.is_parallel,
        "previous": version.is_previous,
        "holder": version.holder,
        "since": position.since,
        "committed_batch": position.batch,
        "committed_at": None if position.committed_at is None else epoch_text(position.committed_at),
        "open_batch": position.open_batch,
        "open_since": None if position.open_since is None else epoch_text(position.open_since),
        "watermark": None if watermark is None else epoch_text(watermark),
        "watermark_behind_seconds": None if watermark is None else max(round(now.timestamp() - watermark), 0),
        "quarantined_rows": version.quarantined_rows,
        "problem": position.problem,
        "sources": [_source_json(source) for source in version.sources],
        "small_files": [
            {**asdict(sink.small), "advice": sink.small.advice} for sink in version.sinks if sink.small is not None
        ],
        "long_logs": [asdict(sink.log) for sink in version.sinks if sink.log is not None],
    }


def _source_json(source: SourceProgress) -> Mapping[str, Any]:
    position = source.position
    return {
        "source": source.name,
        "reader": position.key,
        "form": position.form or None,
        "offset": position.offset,
        "files_read": None if position.read is None else len(position.read),
        "lag": None if source.lag is None else asdict(source.lag),
        "problem": source.problem,
    }
