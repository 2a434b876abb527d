"""When data was last added to a table of Delta Lake, from its log.

The format is that of https://github.com/delta-io/delta/blob/master/PROTOCOL.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlstream.state.progress.lag import newest_version
from sqlstream.state.progress.positions import DatedFiles

DELTA_LOG = "_delta_log"
"""The folder of the log in a table."""


@dataclass(frozen=True)
class _Commit:
    adds_rows: bool
    time_ms: int


def last_rows_added(files: DatedFiles, table: str) -> int | None:
    """Returns when rows were last added to the table in the folder `table` (ms since 1970), None if never.

    Ignores commits that only rewrite files (OPTIMIZE), delete rows or change the table. If such commits are all that is
    left in the log, returns the time of the oldest one: the rows are at least as old.
    Raises: FileNotFoundError if `table` is no table of Delta Lake; OSError.
    """
    log = f"{table}/{DELTA_LOG}"
    newest = newest_version(files.names(log))
    if newest is None:
        raise FileNotFoundError(f"{table} is not a table of Delta Lake")
    oldest: _Commit | None = None
    for version in range(newest, -1, -1):
        path = f"{log}/{version:020d}.json"
        text = files.read_text(path)
        if text is None:
            break
        oldest = _commit(text, files.modified(path))
        if oldest.adds_rows:
            return oldest.time_ms
    else:
        return None
    return None if oldest is None else oldest.time_ms


def _commit(text: str, modified: float | None) -> _Commit:
    """Returns what a commit does, and its time: that in the commit, or else that of its file."""
    adds_rows, info = False, dict[str, Any]()
    for line in text.splitlines():
        action = json.loads(line) if line else {}
        adds_rows = adds_rows or bool(action.get("add", {}).get("dataChange"))
        info = action.get("commitInfo") or info
        if adds_rows and info:
            break
    adds_rows = adds_rows and info.get("operation") != "DELETE"  # it writes the remaining rows of a file again
    time_ms = info.get("inCommitTimestamp") or info.get("timestamp") or (modified or 0) * 1000
    return _Commit(adds_rows, int(time_ms))
