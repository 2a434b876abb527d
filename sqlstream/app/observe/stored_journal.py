"""The journals of submitted runs in the storage of their target: written by the drivers, copied to a project that
reads them.

Object stores cannot append to a file. So a journal is divided into parts, and each write of a part is a new file with
the whole part, after which the earlier file is removed: `<start>_<invocation>_<part>_<write>.jsonl`. A reader takes the
largest file of each part, and knows from its time that the run was alive then.

Beside its journal, a run can keep a note for the next run: `<start>_<invocation>_note_<write>.json`.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, takewhile
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
"""The number of parts to keep in a storage, the newest of all runs, besides two of each run that is alive."""

RETRY_SECONDS = 0.5
"""How long the end of a run waits before it writes the last lines again."""

MAX_WAITING = 20_000
"""The number of lines to keep for a storage that does not respond; the oldest of more are dropped."""

_SUFFIX = ".jsonl"
_NOTE = ".json"


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
        self._mutex, self._ended, self._closes_at = threading.Lock(), threading.Event(), float("inf")
        self._text, self._part, self._write = "", 1, 1
        self._stored = ""  # the file that has all of `_text`, empty if there is none yet
        self._replaced: list[str] = []  # earlier files of the part that are still there
        self._note_text: str | None = None  # what is not stored yet
        self._note_write, self._old_notes = 1, list[str]()
        self._has_failed = False
        self._written_at = float("-inf")
        self._thread = threading.Thread(target=self._work, name="stored journal", daemon=True)

    def add(self, line: str) -> None:
        """Adds a line, which has no newline. Never waits for the storage."""
        with self._mutex:
            self._lines.append(line)
            del self._lines[:-MAX_WAITING]

    def keep(self, note: str, instead_of: Iterable[str] = ()) -> None:
        """Stores `note` in place of the last one and of the notes `instead_of`. Never waits for the storage."""
        with self._mutex:
            self._note_text = note
            self._old_notes += [name for name in instead_of if name not in self._old_notes]

    def notes(self) -> Sequence[tuple[str, str]]:
        """Returns the names and texts of the notes in the storage, those of the run that began last at the end. Raises:
        OSError; Spark's errors.
        """
        files = self._files
        names = sorted(name for name in files.names() if name.endswith(_NOTE)) if files is not None else ()
        read = [(name, files.read(name)) for name in names] if files is not None else ()
        return [(name, text) for name, text in read if text is not None]

    def start(self, open_files: Callable[[], LeaseFiles]) -> None:
        """Begins to write to a folder, whose files can be written until this process ends. One that cannot be opened is
        reported like one that cannot be written.
        """
        from sqlstream.spark.jvm.gateway import SPARK_ERRORS  # loads pyspark

        try:
            self._files = open_files()
        except (OSError, *SPARK_ERRORS) as error:
            self._complain(error)
        else:
            self._thread.start()

    def close(self, seconds: float = 2 * WRITE_SECONDS) -> None:
        """Writes the last lines, and tries it again for `seconds` if the storage fails."""
        self._closes_at = time.monotonic() + seconds
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _work(self) -> None:
        from sqlstream.spark.jvm.gateway import SPARK_ERRORS  # loads pyspark

        while True:
            # asked before the last write, so that it has everything that was added before the end
            is_last, has_failed = self._ended.is_set(), False
            for write in (self._write_note, self._write_new):
                try:
                    write()
                except (OSError, *SPARK_ERRORS) as error:
                    has_failed = True
                    self._complain(error)
            is_complete = bool(self._stored or not self._text) and not self._lines and self._note_text is None
            if is_last and (is_complete or time.monotonic() > self._closes_at):
                return
            if is_last and has_failed:
                time.sleep(RETRY_SECONDS)
            elif is_complete or has_failed:
                self._ended.wait(WRITE_SECONDS)

    def _write_note(self) -> None:
        with self._mutex:
            text, old = self._note_text, list(self._old_notes)
        if self._files is None or text is None:
            return
        name = f"{self._run}_note_{self._note_write:07}{_NOTE}"
        self._note_write += 1  # a failure can leave a part of the file
        with self._mutex:
            self._old_notes.append(name)
        if not self._files.create(name, text):
            raise OSError(f"{name} exists with another text")
        with self._mutex:
            self._note_text = None if self._note_text == text else self._note_text
        for each in old:
            self._files.remove(each)
            with self._mutex:
                self._old_notes.remove(each)

    def _write_new(self) -> None:
        if self._files is None:
            return
        if self._take_lines():
            self._stored = ""
        is_silent = time.monotonic() - self._written_at >= ALIVE_SECONDS
        if not self._text or (self._stored and not is_silent):
            return
        name = f"{self._run}_{self._part:05}_{self._write:07}{_SUFFIX}"
        if self._has_failed:
            self._files.remove(name)  # the last attempt can have left a part of it
        self._has_failed = True  # until the storage has it
        if not self._files.create(name, self._text):
            raise OSError(f"{name} exists with other lines")
        self._stored, self._has_failed, self._written_at = name, False, time.monotonic()
        self._write += 1
        while self._replaced:
            self._files.remove(self._replaced[-1])
            self._replaced.pop()
        self._replaced.append(name)
        if self._write == 2:  # a part has begun
            self._remove_oldest(self._files)

    def _take_lines(self) -> bool:
        """Moves waiting lines to the text of the part, or of the next part if this one is full and stored. Returns
        whether there were any.
        """
        with self._mutex:
            if self._lines and self._stored and len(self._text) >= PART_BYTES:
                self._text, self._part, self._write, self._replaced = "", self._part + 1, 1, []
            sizes = accumulate((len(line) + 1 for line in self._lines), initial=len(self._text))
            count = sum(1 for _ in takewhile(lambda size: size < PART_BYTES, sizes))
            taken, self._lines = self._lines[:count], self._lines[count:]
        self._text += "".join(f"{line}\n" for line in taken)
        return bool(taken)

    def _remove_oldest(self, files: LeaseFiles) -> None:
        """Removes the oldest parts, by the time of their last change. Keeps the first and the newest part of each run
        that is alive: without them, readers do not know that it runs.
        """
        changed: dict[str, float] = defaultdict(float)
        for name, seconds in files.changed().items():
            if name.endswith(_SUFFIX):
                changed[_part_of(name)] = max(seconds, changed[_part_of(name)])
        newest = {_run_of(part): part for part in sorted(changed)}
        alive = {run for run, part in newest.items() if time.time() - changed[part] < LOST_SECONDS}
        old = sorted(changed, key=lambda part: (changed[part], part))[:-MAX_PARTS]
        removed = {
            part for part in old if _run_of(part) not in alive or part not in (newest[_run_of(part)], _first(part))
        }
        for name in files.names() if removed else ():
            if _part_of(name) in removed:
                files.remove(name)

    def _complain(self, error: Exception) -> None:
        if not self._has_reported:
            self._has_reported = True
            problem = str(error).partition("\n")[0]
            self._report(f"the events of the run cannot be written to its storage now ({problem})")


def _run_of(part: str) -> str:
    return part.rpartition("_")[0]


def _first(part: str) -> str:
    return f"{_run_of(part)}_{1:05}"


def _part_of(name: str) -> str:
    return name.rpartition("_")[0]


def copy_stored_logs(storage: Storage, folder: str, root: Path, target: str) -> Mapping[str, float]:
    """Brings the copies of the journals in `folder` up to date, in the project at `root`. Returns when each submitted
    run was alive, in seconds since 1970, by the id of its invocation. Raises: OSError; Spark's errors.
    """
    copies = root / ARTIFACTS_FOLDER / COPIES / quote(target, safe="")
    newest = _largest(file for file in storage.files(folder) if file.name.endswith(_SUFFIX))
    signs: dict[str, float] = {}
    for part, file in newest.items():
        run = _run_of(part).rpartition("_")[2]
        signs[run] = max(signs.get(run, 0.0), file.modified / 1000)
        copy = copies / f"{part}{_SUFFIX}"
        with suppress(FileNotFoundError):  # also if another command has just removed it
            if copy.stat().st_size == file.size:
                continue
        text = storage.read_text(f"{folder}/{file.name}")
        if text is not None:  # otherwise the run has just replaced it
            copies.mkdir(parents=True, exist_ok=True)
            aside = copies / f".{uuid4().hex}"
            aside.write_text(text, "utf-8")
            aside.replace(copy)
    for copy in copies.glob(f"*{_SUFFIX}"):
        if copy.stem not in newest:
            copy.unlink(missing_ok=True)  # another command may have done it
    return signs


def _largest(files: Iterable[StoredFile]) -> Mapping[str, StoredFile]:
    """Returns the complete file of each part: a killed run can have left a file that it was writing."""
    found: dict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        found[_part_of(file.name)].append(file)
    return {part: max(each, key=lambda file: (file.size, file.name)) for part, each in sorted(found.items())}


def copied_journals(root: Path) -> Sequence[Path]:
    """Returns the copied journals of all targets, the oldest first."""
    return sorted((root / ARTIFACTS_FOLDER / COPIES).glob(f"*/*{_SUFFIX}"), key=lambda path: path.name)
