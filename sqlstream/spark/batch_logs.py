"""Reads the logs of a checkpoint from its storage, and looks for the files that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession

from sqlstream.spark.hadoop import hadoop_exists
from sqlstream.spark.storage import Storage, storage_for
from sqlstream.state.batch_logs import (
    COMMITS_LINES,
    OFFSETS_LINES,
    SINK_LOG,
    BatchLog,
    BatchLogs,
    entry_names,
    since_compact,
)
from sqlstream.state.damage import Damage, find_damage

LAST = 3
"""Entries of the offsets and commits that are read: Spark asks for the last two, and one more may be torn."""

_LOCAL = re.compile(r"file:(?://)?(?=/(?!/))")


def checkpoint_damage(session: SparkSession, checkpoint: str, output: str | None) -> list[Damage]:
    """Returns what keeps the query with this checkpoint from going on exactly; `output` is the folder of its file sink,
    None for other sinks. Raises: OSError, Spark's errors.
    """
    logs = _read_logs(session, checkpoint, output)
    return find_damage(logs, partial(_missing_files, session))


def _read_logs(session: SparkSession, checkpoint: str, output: str | None) -> BatchLogs:
    storage, checkpoint = storage_for(checkpoint, session)
    offsets = _read(storage, f"{checkpoint}/offsets", _last, OFFSETS_LINES)
    commits = _read(storage, f"{checkpoint}/commits", _last, COMMITS_LINES)
    choose = partial(_of_files, with_last=offsets.last > commits.last)
    folder = f"{checkpoint}/sources"
    sources = {name: _read(storage, f"{folder}/{name}", choose) for name in storage.names(folder)}
    identity = f"{checkpoint}/metadata"
    logs = BatchLogs(offsets, commits, sources, identity=(identity, storage.read_text(identity)))
    if output is None:
        return logs
    storage, output = storage_for(output, session)
    return replace(logs, sink=_read(storage, f"{output}/{SINK_LOG}", since_compact))


def _last(names: Mapping[int, str]) -> list[int]:
    return sorted(names)[-LAST:]


def _of_files(names: Mapping[int, str], *, with_last: bool) -> list[int]:
    """The entries to be read of a source's log: a compact one is long, and read only for a batch that was begun."""
    numbers = since_compact(names)
    return [max(names)] if names and not numbers and with_last else numbers


def _read(
    storage: Storage, folder: str, choose: Callable[[Mapping[int, str]], Sequence[int]], lines: int = 0
) -> BatchLog:
    names = entry_names(storage.names(folder))
    texts = {number: storage.read_text(f"{folder}/{names[number]}") for number in choose(names)}
    return BatchLog(folder, names, {number: text for number, text in texts.items() if text is not None}, lines)


def _missing_files(session: SparkSession, uris: Sequence[str]) -> list[str]:
    """Those of `uris`, as a source's log has them, that do not exist."""
    return [uri for uri in uris if not _exists(session, uri)]


def _exists(session: SparkSession, uri: str) -> bool:
    local = _LOCAL.match(uri)
    return Path(unquote(uri[local.end() :])).exists() if local else hadoop_exists(session, uri)


def archive_entry(session: SparkSession, path: str, checkpoint: str, archive: str) -> tuple[str, str]:
    """Moves an entry with its checksum and returns its old and its new path.

    One of the checkpoint goes below the folder `archive`, one of a file sink below the output's own `_archive`: it lies
    in the same file system, and no reader sees it.
    """
    storage, checkpoint = storage_for(checkpoint, session)
    moved = _archived(path, checkpoint, archive)
    storage, path = storage_for(path, session)
    folder, _, name = path.rpartition("/")
    checksum = f".{name}.crc"
    storage.move(path, moved)
    if checksum in storage.names(folder):
        storage.move(f"{folder}/{checksum}", f"{moved.rpartition('/')[0]}/{checksum}")
    return path, moved


def _archived(path: str, checkpoint: str, archive: str) -> str:
    if path.startswith(f"{checkpoint}/"):
        return archive + path.removeprefix(checkpoint)
    output, _, name = path.rpartition(f"/{SINK_LOG}/")
    return f"{output}/_archive/{archive.rpartition('/')[2]}/{SINK_LOG}/{name}"
