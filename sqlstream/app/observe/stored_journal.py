"""The journals of submitted runs in the storage of their target: written by the drivers, copied to a project that
reads them.

Object stores cannot append to a file. So a journal is divided into parts, and each write of a part is a new file with
the whole part, after which the earlier file is removed: `<start>_<invocation>_<part>_<write>.jsonl`. A reader takes the
largest file of each part, and knows from its time that the run was alive then.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import uuid4

from sqlstream.app.loading.load import Invocation
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.state.output_files import StoredFile

if TYPE_CHECKING:  # loads pyspark
    from sqlstream.spark.storage.lease import LeaseFiles
    from sqlstream.spark.storage.storage import Storage

FOLDER = "_logs"
"""The folder in the storage, where no sink writes: readers ignore names that begin with `_`."""

COPIES = "submitted"
"""The folder in target/ with a copy of the journals of each target."""

WRITE_SECONDS = 5.0
"""How often new lines are written."""

ALIVE_SECONDS = 60.0
"""How often a run without new lines writes, to say that it is alive."""

LOST_SECONDS = 5 * ALIVE_SECONDS
"""A run that has not written for this time has ended without a report. Longer than clocks of machines differ."""

PART_BYTES = 1_000_000
"""The size at which the next part begins: it is also the most that one write sends."""

MAX_PARTS = 50
"""The number of parts to keep in a storage, the newest of all runs."""

MAX_WAITING = 20_000
"""The number of lines to keep for a storage that does not respond; the oldest of more are dropped."""

_SUFFIX = ".jsonl"


def stored_logs(storage: str) -> str:
    """Returns the folder of the journals in the storage of a target."""
    return f"{storage.rstrip('/')}/{FOLDER}"


class StoredJournal:
    """Writes the lines of the journal of one run to its storage, from `start` until `close`. Keeps earlier lines, and
    those of a time without storage. `report` gets one sentence if the storage cannot be written.
    """

    def __init__(self, invocation: Invocation, report: Callable[[str], None]) -> None:
        self._run = f"{invocation.started_at:%Y%m%dT%H%M%SZ}_{invocation.id}"
        self._report = report
        self._has_reported = False
        self._files: LeaseFiles | None = None
        self._lines: list[str] = []
        self._mutex, self._ended = threading.Lock(), threading.Event()
        self._text, self._part, self._write, self._written_at = "", 1, 0, 0.0
        self._thread = threading.Thread(target=self._work, name="stored journal", daemon=True)

    def add(self, line: str) -> None:
        """Adds a line, which has no newline. Never waits for the storage."""
        with self._mutex:
            self._lines.append(line)
            del self._lines[:-MAX_WAITING]

    def start(self, files: LeaseFiles) -> None:
        """Begins to write to a folder, whose files can be written until this process ends."""
        self._files = files
        self._thread.start()

    def close(self, seconds: float = 2 * WRITE_SECONDS) -> None:
        """Writes the last lines, and waits at most `seconds` for them."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _work(self) -> None:
        from sqlstream.spark.jvm.gateway import SPARK_ERRORS  # loads pyspark

        is_first = True
        while True:
            # asked before the last write, so that it has everything that was added before the end
            is_last = self._ended.is_set()
            try:
                if is_first:
                    self._remove_oldest()
                is_first = False
                self._write_new()
            except (OSError, *SPARK_ERRORS) as error:
                self._note(str(error).partition("\n")[0])
            if is_last:
                return
            self._ended.wait(WRITE_SECONDS)

    def _write_new(self) -> None:
        with self._mutex:
            lines, self._lines = self._lines, []
        if not lines and time.monotonic() - self._written_at < ALIVE_SECONDS:
            return
        self._text += "".join(f"{line}\n" for line in lines)
        if self._files is None or not self._text:
            return
        before, self._write = self._name, self._write + 1
        self._written_at = float("-inf")  # until the storage has it
        self._files.create(self._name, self._text)
        self._written_at = time.monotonic()
        if self._write > 1:
            self._files.remove(before)
        if len(self._text) >= PART_BYTES:
            self._text, self._part, self._write = "", self._part + 1, 0

    @property
    def _name(self) -> str:
        return f"{self._run}_{self._part:05}_{self._write:07}{_SUFFIX}"

    def _remove_oldest(self) -> None:
        names = self._files.names() if self._files is not None else ()
        parts = sorted({_part_of(name) for name in names if name.endswith(_SUFFIX)})
        old = frozenset(parts[:-MAX_PARTS])
        for name in names:
            if _part_of(name) in old and self._files is not None:
                self._files.remove(name)

    def _note(self, problem: str) -> None:
        if not self._has_reported:
            self._has_reported = True
            self._report(f"the events of the run cannot be written to its storage now ({problem})")


def _part_of(name: str) -> str:
    return name.rpartition("_")[0]


def copy_stored_logs(storage: Storage, folder: str, root: Path, target: str) -> None:
    """Brings the copies of the journals in `folder` up to date, in the project at `root`. Their times are those in the
    storage. Raises: OSError; Spark's errors.
    """
    copies = _copies(root, target)
    newest = _largest(file for file in storage.files(folder) if file.name.endswith(_SUFFIX))
    for part, file in newest.items():
        copy = copies / f"{part}{_SUFFIX}"
        if not copy.exists() or copy.stat().st_size != file.size:
            text = storage.read_text(f"{folder}/{file.name}")
            if text is None:
                continue  # the run has just replaced it
            copies.mkdir(parents=True, exist_ok=True)
            aside = copies / f".{uuid4().hex}"
            aside.write_text(text, "utf-8")
            aside.replace(copy)
        os.utime(copy, (file.modified / 1000, file.modified / 1000))
    for copy in copies.glob(f"*{_SUFFIX}"):
        if copy.stem not in newest:
            copy.unlink(missing_ok=True)  # another command may have done it


def _largest(files: Iterable[StoredFile]) -> Mapping[str, StoredFile]:
    """Returns the complete file of each part: a killed run can have left a file that it was writing."""
    found: dict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        found[_part_of(file.name)].append(file)
    return {part: max(each, key=lambda file: (file.size, file.name)) for part, each in sorted(found.items())}


def copied_journals(root: Path) -> Sequence[Path]:
    """Returns the copied journals of all targets, the oldest first."""
    return sorted((root / ARTIFACTS_FOLDER / COPIES).glob(f"*/*{_SUFFIX}"), key=lambda path: path.name)


def last_signs(root: Path, target: str) -> Mapping[str, float]:
    """Returns when each submitted run of a target was alive, in seconds since 1970, by the id of its invocation. Only
    as new as the copies.
    """
    found: dict[str, float] = {}
    for path in _copies(root, target).glob(f"*{_SUFFIX}"):
        with suppress(OSError, ValueError):
            _, invocation, _ = path.stem.split("_")
            found[invocation] = max(found.get(invocation, 0.0), path.stat().st_mtime)
    return found


def _copies(root: Path, target: str) -> Path:
    return root / ARTIFACTS_FOLDER / COPIES / quote(target, safe="")
