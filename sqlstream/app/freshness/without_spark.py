"""The time of the newest data of a source, as far as Python can find it without Java."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.local_files import LocalFiles
from sqlstream.app.running.local_files import has_local_files, is_local
from sqlstream.app.state.source_files import files_at
from sqlstream.errors import FindingsError
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.format import STREAMS
from sqlstream.project.formats.formats import format_of
from sqlstream.project.unknown_freshness import no_time, only_streams, unknown
from sqlstream.project.values import SourceTable
from sqlstream.state.output_files import StoredFile
from sqlstream.state.progress.delta_commits import last_rows_added
from sqlstream.state.progress.source_files import FileChoice, file_choice
from sqlstream.state.results.freshness import NEVER

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
    if freshness is None or freshness.loaded_at_field is not None:
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
        why, place = f"{path}: {reason.lower()}" if reason else str(error), table.places.get("path")
        raise FindingsError([unknown(table, why, "fix `path`, or make its files readable", place)]) from error


def time_of(milliseconds: int | None) -> datetime:
    """Returns a time in milliseconds since 1970 as UTC, `NEVER` for None."""
    return NEVER if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)


def _newest_commit(table: SourceTable, path: str) -> datetime | None:
    return time_of(last_rows_added(LocalFiles(), path)) if table.format == "delta" else None


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
