"""Adds the files of a batch to an output with Spark's log of a file sink, without the JVM.

Spark's batch writer writes the files aside. They move into the output, where no reader of the log looks at them, and
then an entry of the log lists them: a killed process leaves the whole batch, or files that the log does not have. The
log has the form of Spark's FileStreamSinkLog, which continues it on a target with a master.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import Output
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.backfills import file_uri
from sqlstream.state.batch_logs import SINK_LOG, entry_names, from_compact, is_complete
from sqlstream.state.layout import writing_folder

_INTERVAL, _DELETION = (f"spark.sql.streaming.fileSink.log.{name}" for name in ("compactInterval", "deletion"))
"""The settings with which Spark compacts the log, and deletes entries that a compact one contains."""

_KEPT_BATCHES, _KEPT_SECONDS = 100, 600.0
"""How many batches have entries before Spark deletes one, and for how long an entry stays."""

_JOB_ID = re.compile(r"(?<=\d-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id in the name of a file, which all files of a write share."""


def remove_leftovers(folder: str) -> None:
    """Removes files that killed attempts have written aside. A process that goes on with one fails then."""
    storage = LocalStorage()
    for name in storage.names(writing_folder(folder)):
        with suppress(OSError):
            storage.remove(f"{writing_folder(folder)}/{name}")


def add_files(folder: str, number: int, rows: DataFrame, output: Output, options: Mapping[str, str]) -> None:
    """Adds the rows of batch `number` to the local `folder`, whose log has all batches before it, unless another
    process does so first. Raises: OSError, Spark's errors.
    """
    storage, session = LocalStorage(), rows.sparkSession
    aside = f"{writing_folder(folder)}/{uuid4().hex}"
    writer = rows.write.format(output.format).options(**options).mode("error")
    (writer.partitionBy(*output.partition_by) if output.partition_by else writer).save(aside)
    lines, moved = [], []
    try:
        for file in storage.files(aside):
            place, _, name = file.name.rpartition("/")
            if name.startswith(("_", ".")):
                continue
            # each file has a name that no other file of the output has, as in Spark's sink
            unique = f"{place}/{_JOB_ID.sub(str(uuid4()), name, count=1)}".lstrip("/")
            moved.append(f"{folder}/{unique}")
            storage.move(f"{aside}/{file.name}", moved[-1])
            lines.append(_line(moved[-1], file.size, file.modified))
        storage.remove(aside)
        _check_shared(folder, number, rows, lines)
    except BaseException:
        _remove(moved)
        raise
    interval, deletes = int(session.conf.get(_INTERVAL) or 10), session.conf.get(_DELETION) != "false"
    # after an error the entry can be there, and then lists the files
    if not _add_entry(f"{folder}/{SINK_LOG}", number, lines, interval, deletes=deletes):
        _remove(moved)


def _check_shared(folder: str, number: int, rows: DataFrame, lines: Sequence[str]) -> None:
    """Raises: OSError if executors have written the rows of a batch to folders of other machines."""
    if not lines and not rows.isEmpty():
        raise OSError(f"the files of batch {number} are not in {folder}: do the executors share this folder?")


def _remove(paths: Sequence[str]) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)


def _line(path: str, size: int, modified: int) -> str:
    """Returns the line of a file; the last two numbers are those of a local file system in Hadoop."""
    status = {"path": file_uri(path), "size": size, "isDir": False, "modificationTime": modified}
    status |= {"blockReplication": 1, "blockSize": 33_554_432, "action": "add"}
    return json.dumps(status, separators=(",", ":"), ensure_ascii=False)


def _add_entry(log: str, number: int, lines: list[str], default: int, *, deletes: bool) -> bool:
    """Adds an entry, and returns whether it did: another process may have been first. Raises: OSError."""
    names = entry_names(LocalStorage().names(log))
    interval = compact_interval(names, default)
    is_compact = (number + 1) % interval == 0
    earlier = _earlier_lines(log, names, number) if is_compact else []
    text = "\n".join(["v1", *earlier, *lines])
    if not _create(Path(log, f"{number}.compact" if is_compact else str(number)), text):
        return False
    if is_compact and deletes:
        _delete_expired(log, names, number, interval)
    return True


def compact_interval(names: Mapping[int, str], default: int) -> int:
    """Returns after how many entries one is compact, as Spark's CompactibleFileStreamLog finds it in the log."""
    compact = sorted((number for number, name in names.items() if name.endswith(".compact")), reverse=True)
    if len(compact) > 1:
        return compact[0] - compact[1]
    if not compact:
        return default
    count = compact[0] + 1
    if default >= count or default >= count // 2:
        return count
    return next((each for each in range(default, count // 2 + 1) if count % each == 0), count)


def _earlier_lines(log: str, names: Mapping[int, str], number: int) -> list[str]:
    """Returns the lines of all files before an entry. Raises: OSError if an entry is missing or torn."""
    found = sorted(each for each in from_compact(names) if each < number)
    first = found[0] if found and names[found[0]].endswith(".compact") else 0
    texts = [LocalStorage().read_text(f"{log}/{names[each]}") or "" for each in found]
    if found != list(range(first, number)) or not all(is_complete(text, 0) for text in texts):
        raise OSError(f"an entry before {number} is missing or incomplete in {log}")
    return [line for text in texts for line in text.split("\n")[1:]]


def _create(path: Path, text: str) -> bool:
    """Creates a file with its whole text in one step, and returns whether it did: it may exist. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # of an entry that somebody has removed: Spark would compare this one with it
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    aside = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(aside)
    except FileExistsError:
        # a network file system can lose its answer, and repeat the request
        return path.read_text("utf-8") == text
    finally:
        aside.unlink(missing_ok=True)
    return True


def _delete_expired(log: str, names: Mapping[int, str], number: int, interval: int) -> None:
    """Deletes entries as Spark does: of the last hundred batches, and of the last ten minutes, all stay."""
    first = number + 1 - _KEPT_BATCHES
    if interval > first:
        return
    last = first - first % interval - 1
    for each, name in names.items():
        path = Path(log, name)
        with suppress(OSError):
            if each < last and time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()
                path.with_name(f".{name}.crc").unlink(missing_ok=True)
