"""Whether an output has the batches that the checkpoint of its query has committed.

A query that continues into an output that was removed, replaced or restored from an older copy writes only its new rows
there: a stream never computes the earlier ones again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.formats.formats import format_of
from sqlstream.state.batch_logs import OFFSETS_LINES, SINK_LOG, from_compact, is_json, last_entry
from sqlstream.state.checkpoints import FilesOf, ReadableFiles, read_log
from sqlstream.state.layout import SNAPSHOT_NAME, checkpoint_path
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.query_versions import split_sqlite_path
from sqlstream.state.refusals import refresh_text
from sqlstream.state.repartitions import batch_partitions

_TABLE_FOLDERS = {"delta": "_delta_log", "iceberg": "metadata"}
"""The folder that makes a folder a table, by format."""


@dataclass(frozen=True)
class CommittedBatches:
    """The batches that a query has committed: Spark's id of the query, and the number of the last batch that it gave to
    its sinks. A repartition of its state is a batch of the checkpoint only.
    """

    query_id: str
    last: int
    last_written: int


def committed_batches(files: ReadableFiles, root: str, version: int) -> CommittedBatches | None:
    """Returns the committed batches of a version under `root`, None before the first one. Raises: OSError."""
    checkpoint = checkpoint_path(root, version)
    last = last_entry(files.names(f"{checkpoint}/commits"))
    query_id = find_query_id(files, checkpoint) if last >= 0 else None
    if query_id is None:
        return None  # damage, which `find_damage` finds
    # Several repartitions can follow each other.
    written = last
    while _is_repartition(files, f"{checkpoint}/offsets", written):
        written -= 1
    return CommittedBatches(query_id, last, written)


def find_query_id(files: ReadableFiles, checkpoint: str) -> str | None:
    """Returns Spark's id of the query of a checkpoint, None before its first start. Raises: OSError."""
    identity = files.read_text(f"{checkpoint}/metadata") or ""
    return str(json.loads(identity)["id"]) if is_json(identity) else None


def _is_repartition(files: ReadableFiles, folder: str, number: int) -> bool:
    both = (number - 1, number)
    offsets = read_log(files, folder, lambda names: [each for each in both if each in names], OFFSETS_LINES)
    if offsets.torn() or len(offsets.texts) < len(both):
        return False
    before, after = (batch_partitions(offsets, each) for each in both)
    return before is not None and after is not None and before != after


def lost_files(files_of: FilesOf, use: QueryIdentity, path: str, last: int) -> str | None:
    """Returns what is wrong with the output of a query at `path`, which has written batch `last`; None if nothing is,
    or if files do not show it. `use` is the identity of the query with this sink alone.

    An output that an interrupted switch of its readers has not renamed yet is still at its plain path.
    """
    facts = format_of(use.sink_format)
    if facts.is_embedded:
        path, _ = split_sqlite_path(path)
        files, path = files_of(path)
        folder, _, name = path.rpartition("/")
        return None if name in files.names(folder) else f"the file {path} does not exist"
    # Absolute paths and URIs have a slash. The names of tables and topics have none, and files show nothing of them.
    if "/" not in path:
        return None
    found = [_lost_folder(*files_of(each), use, last) for each in dict.fromkeys((path, path.removesuffix(".v1")))]
    return None if None in found else found[0]


def _lost_folder(files: ReadableFiles, folder: str, use: QueryIdentity, last: int) -> str | None:
    if use.adds_files:
        return lost_in_log(read_log(files, f"{folder}/{SINK_LOG}", lambda _: ()).names, folder, last)
    if use.writes_snapshots:
        exists = files.read_text(f"{folder}/{SNAPSHOT_NAME}") is not None
        return None if exists else f"{folder} does not exist, or is no output of this query"
    is_lost = use.sink_format in _TABLE_FOLDERS and not is_table_folder(files, folder, use.sink_format)
    return f"the table {folder} does not exist" if is_lost else None


def is_table_folder(files: ReadableFiles, folder: str, format_name: str) -> bool:
    """Returns whether a folder is a table of Delta Lake or Iceberg. Raises: OSError."""
    return bool(files.names(f"{folder}/{_TABLE_FOLDERS[format_name]}"))


def lost_in_log(names: Mapping[int, str], folder: str, last: int) -> str | None:
    """Returns what is wrong with the output of a file sink in `folder`, whose log has the entries `names`, None if
    nothing is. `last` is the last batch that the query has written.

    Spark adds an entry for each batch, also for one without rows, and skips a batch that the log has.
    """
    log = f"{folder}/{SINK_LOG}"
    if not names:
        return f"{log} does not exist"
    newest, kept = max(names), from_compact(names)
    if newest < last:
        return f"{log} ends with batch {newest}"
    # The sink gets its entry before the checkpoint commits the batch, so one entry more is usual after a kill.
    if newest > last + 1:
        return f"{log} has batches up to {newest}, so the checkpoint is an older one"
    first = min(kept) if names[min(kept)].endswith(".compact") else 0
    missing = sorted({*range(first, newest + 1)} - {*kept})
    return f"{log} lacks batch {missing[0]}" if missing else None


def lost_output(model: str, sink: str, problem: str, last: int, location: Location, *, more: str = "") -> Finding:
    """Returns the refusal of a query whose output lacks earlier rows. `more` is another way out."""
    return Finding(
        "output-lost",
        f"the output of `{model}` in sink `{sink}` is not the one that its checkpoint has written",
        f"{problem}; its checkpoint has committed {f'batches 0 to {last}' if last else 'batch 0'}, and a run would "
        "write only later rows",
        f"restore the output from a backup{more}; or {refresh_text(model)}",
        location,
    )
