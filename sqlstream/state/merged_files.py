"""Which files of a file sink can become fewer, and the entry of the sink's log that lists the files in their place.

Spark's readers list the files of the last compact entry of the log (`9.compact`) and of all later entries. A compact
entry is one file, so replacing it shows readers either all old files or all new ones: see CompactibleFileStreamLog,
FileStreamSinkLog and MetadataLogFileIndex of Spark 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.output_files import CommittedFile, StoredFile, base_name

FORMATS = ("parquet", "orc")
"""The formats whose files hold the names and types of their columns, so reading and writing them changes no row."""

MERGED_BYTES = 128_000_000
"""The intended size of a merged file (bytes): Spark's readers split larger ones."""

SMALL_BYTES = MERGED_BYTES // 2
"""A file below this size (bytes) can be merged with others."""

MERGED_LOG = "merged.json"
"""The record of a merge in its archive: the files that it replaces, and the files that replace them."""


@dataclass(frozen=True)
class SmallFolder:
    """Files of one folder of an output, by their paths relative to the output, which together have `size` bytes."""

    names: tuple[str, ...]
    size: int

    @property
    def files_after(self) -> int:
        """How many files they become."""
        return max(1, round(self.size / MERGED_BYTES))


@dataclass(frozen=True)
class MergedFile:
    """A new file and its size in bytes, in the folder of the file `first`, one of those that it replaces. All are paths
    relative to the output.
    """

    name: str
    size: int
    first: str


def last_compact(log: BatchLog) -> int | None:
    """Returns the number of the compact entry that readers of the log begin with, None if there is none."""
    return max((number for number in log.names if log.is_compact(number)), default=None)


def small_folders(entry: str, committed: Sequence[CommittedFile]) -> tuple[SmallFolder, ...]:
    """Returns the folders whose files become fewer, of the files that the compact `entry` lists."""
    listed = {base_name(str(line["path"])) for line in _lines(entry)}
    folders: dict[str, list[CommittedFile]] = {}
    for file in committed:
        if base_name(file.name) in listed and file.size < SMALL_BYTES:
            folders.setdefault(file.name.rpartition("/")[0], []).append(file)
    found = (SmallFolder(tuple(f.name for f in files), sum(f.size for f in files)) for files in folders.values())
    return tuple(folder for folder in found if folder.files_after < len(folder.names))


def has_deletions(entry: str) -> bool:
    """Returns whether an entry has lines other than of added files, which no Spark since 3.1 writes."""
    return any(line.get("action") != "add" for line in _lines(entry))


def merged_entry(entry: str, replaced: Sequence[str], merged: Sequence[MergedFile]) -> str:
    """Returns the compact `entry` with the `merged` files in the place of the `replaced` ones.

    A merged file has the newest time of the last change among those of its folder: that of its newest rows.
    """
    lines, gone = _lines(entry), {base_name(name) for name in replaced}
    by_name = {base_name(str(line["path"])): line for line in lines}
    kept = [line for line in lines if base_name(str(line["path"])) not in gone]
    added = []
    for file in merged:
        like = by_name[base_name(file.first)]
        folder = str(like["path"]).rpartition("/")[0]
        times = [
            line["modificationTime"]
            for name, line in by_name.items()
            if name in gone and str(line["path"]).rpartition("/")[0] == folder
        ]
        path = f"{folder}/{base_name(file.name)}"
        added.append({**like, "path": path, "size": file.size, "modificationTime": max(times)})
    texts = (json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in [*kept, *added])
    return "\n".join([entry.split("\n")[0], *texts])


def recomputed_entry(log: BatchLog, replaced: Sequence[str], files: Sequence[tuple[str, StoredFile]]) -> str:
    """Returns a compact entry after the whole `log`: its files without the `replaced` ones, and new `files` with their
    URIs.
    """
    lines = [line for number in sorted(log.texts) for line in _lines(log.texts[number])]
    gone = set(map(base_name, replaced))
    like = lines[-1] if lines else {**_NEW_FILE, "blockReplication": 1, "blockSize": 0}
    kept = [line for line in lines if base_name(str(line["path"])) not in gone]
    added = [
        {**like, **_NEW_FILE, "path": uri, "size": file.size, "modificationTime": file.modified} for uri, file in files
    ]
    names = [base_name(str(line["path"])) for line in [*kept, *added]]
    if len(set(names)) < len(names) or len(kept) + len(gone) != len(lines):
        raise OSError("two files of the output have the same name, so its log cannot say which one is replaced")
    texts = (json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in [*kept, *added])
    return "\n".join(["v1", *texts])


_NEW_FILE = {"isDir": False, "action": "add"}
"""What each line of an entry says about a file (SinkFileStatus)."""


def merge_record(replaced: Sequence[str], added: Sequence[str]) -> str:
    """Returns the text of the record of `added` files and of those that they replace."""
    return json.dumps({"replaced": list(replaced), "merged": list(added)}, indent=1)


def recorded_files(record: str) -> frozenset[str]:
    """Returns all files in the record of a merge: those that the log does not list are of no use any more."""
    found: Mapping[str, list[str]] = json.loads(record)
    return frozenset([*found["replaced"], *found["merged"]])


def _lines(entry: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in entry.split("\n")[1:] if line]
