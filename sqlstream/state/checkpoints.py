"""Reads the stored versions of a query: their checkpoints and ledgers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.formats.formats import format_of
from sqlstream.state.batch_logs import SINK_LOG, BatchLog, entry_names, last_entry
from sqlstream.state.layout import SNAPSHOT_NAME, checkpoint_path, ledger_path, version_number, versions_path
from sqlstream.state.ledger import Ledger, LedgerUnreadableError, read_ledger
from sqlstream.state.output_files import StoredFile
from sqlstream.state.query_versions import Versions, read_parts, with_new_names


class ReadableFiles(Protocol):
    """A folder tree that can be read; paths are absolute paths or URIs."""

    def read_text(self, path: str) -> str | None:
        """Returns the file's text, None if it does not exist."""

    def names(self, folder: str) -> tuple[str, ...]:
        """Returns the names in `folder`, none if it does not exist."""


class ListedFiles(ReadableFiles, Protocol):
    """A folder tree that can be read and listed."""

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """Returns all files in `folder` and its subfolders, none if it does not exist."""


FilesOf = Callable[[str], tuple[ReadableFiles, str]]
"""Returns the files at a path, and the path in the form that they accept."""


@dataclass(frozen=True)
class CheckpointState:
    """The stored state of one version of a query: its number `version` (0: none), the ledger in effect, whether a batch
    has begun, and the number of the last committed batch (-1: none). `newest` is the highest number of a version.

    `ledger` is None if there is none; `unreadable` then says why if the file exists. `abandoned` is the ledger of a
    changed query that started last and committed no batch. `output_committed`: the log of a file sink has a batch, even
    if the checkpoint has none. `published` is as in `Versions`.
    """

    version: int
    ledger: Ledger | None
    has_batches: bool
    ledger_path: str
    unreadable: str | None = None
    last_commit: int = -1
    output_committed: bool = False
    abandoned: Ledger | None = None
    newest: int = 0
    published: tuple[str, ...] = ()

    @property
    def next_version(self) -> int:
        """The number of a new version."""
        return max(self.version, self.newest) + 1

    @property
    def is_used(self) -> bool:
        """Whether a batch was committed, in the checkpoint or in the output."""
        return self.last_commit >= 0 or self.output_committed


def read_checkpoint(files_of: FilesOf, root: str, *, parallel: bool = False) -> CheckpointState:
    """Returns the state of the current version of the query under `root`, or of the parallel version.

    Raises: VersionsUnreadableError, OSError.
    """
    numbers = read_versions(files_of, root)
    parts = _parts(files_of, root, numbers)
    version, newest = parts.chosen(parallel=parallel), max(parts.highest, *numbers, 0)
    if not version:
        published = parts.published or ()
        return CheckpointState(0, None, False, ledger_path(root, newest + 1), newest=newest, published=published)
    return replace(read_version(files_of, root, version), newest=newest)


def read_versions_file(files_of: FilesOf, root: str) -> Versions:
    """Returns which version of the query under `root` is current, 0 if there is none. Raises: VersionsUnreadableError,
    OSError.
    """
    return _parts(files_of, root, read_versions(files_of, root))


def _parts(files_of: FilesOf, root: str, numbers: Sequence[int]) -> Versions:
    files, folder = files_of(root)
    path = versions_path(folder)
    return read_parts(files.read_text(path), max(numbers, default=0), path)


def read_versions(files_of: FilesOf, root: str) -> list[int]:
    """Returns the numbers of the versions under `root`, in order."""
    files, root = files_of(root)
    return sorted(number for name in files.names(root) if (number := version_number(name)))


def read_version(files_of: FilesOf, root: str, version: int) -> CheckpointState:
    """Returns the state of one version. Raises: VersionsUnreadableError, OSError."""
    files, root = files_of(root)
    path = versions_path(root)
    published = read_parts(files.read_text(path), version, path).published or ()
    path = ledger_path(root, version)
    begun = bool(entry_names(files.names(f"{checkpoint_path(root, version)}/offsets")))
    last = last_commit(files, root, version) if begun else -1
    recorded, unreadable = _read(files, path)
    if recorded is None:
        return CheckpointState(version, None, begun, path, unreadable, last, published=published)
    ledger = recorded.settled(last)
    # `settled` returned the recorded ledger, so the changed query has committed nothing.
    abandoned = recorded.pending.ledger if recorded.pending and ledger is recorded else None
    ledger = with_new_names(ledger, published) if version == 1 else ledger
    # A process can end after the sink has batch 0 in its log, and before the checkpoint has its commit.
    in_output = begun and last < 0 and any(has_committed_files(files_of, output) for output in ledger.added_files)
    return CheckpointState(version, ledger, begun, path, None, last, in_output, abandoned, published=published)


def _read(files: ReadableFiles, path: str) -> tuple[Ledger | None, str | None]:
    text = files.read_text(path)
    if text is None:
        return None, None
    try:
        return read_ledger(text), None
    except LedgerUnreadableError as error:
        return None, str(error)


def last_commit(files: ReadableFiles, root: str, version: int) -> int:
    """Returns the number of the last committed batch in a version of a query, -1 if there is none."""
    return last_entry(files.names(f"{checkpoint_path(root, version)}/commits"))


class ExistingFiles(ReadableFiles, Protocol):
    """A folder tree that can also tell whether a folder exists."""

    def exists(self, path: str) -> bool:
        """Returns whether a file or folder exists."""


def is_used_folder(files: ExistingFiles, folder: str, *, has_snapshots: bool) -> bool:
    """Returns whether the output `folder` of a new checkpoint has batches of another one, or with `has_snapshots`
    whether it is no snapshot. Raises: OSError.
    """
    if has_snapshots:
        return files.exists(folder) and files.read_text(f"{folder}/{SNAPSHOT_NAME}") is None
    return bool(entry_names(files.names(f"{folder}/{SINK_LOG}")))


def has_committed_files(files_of: FilesOf, output: str) -> bool:
    """Returns whether the log of a file sink in the folder `output` contains a batch."""
    files, folder = files_of(output)
    return bool(entry_names(files.names(f"{folder}/{SINK_LOG}")))


def read_log(
    files: ReadableFiles, folder: str, choose: Callable[[Mapping[int, str]], Sequence[int]], lines: int = 0
) -> BatchLog:
    """Returns the log in `folder` with the texts of the entries that `choose` returns. `lines` is as in `BatchLog`."""
    names = entry_names(files.names(folder))
    texts = {number: files.read_text(f"{folder}/{names[number]}") for number in choose(names)}
    return BatchLog(folder, names, {number: text for number, text in texts.items() if text is not None}, lines)


def unrestartable(compiled: CompiledProject, model: CompiledModel) -> str | None:
    """Returns why the query of `model` cannot restart after a failure, None if it can.

    Spark cannot restart some queries from a checkpoint, and some batch models would append their rows twice.
    """
    if not model.streaming:
        output = model.output
        if output is None or format_of(output.format).replaces_rows or dialect_of(output.format, output.options):
            return None
        return f"it adds its rows to {output.format}"
    for output in model.outputs:
        if not format_of(output.format).is_restartable:
            return f"it writes to {output.format}"
    for table in compiled.tables_of(model.unique_id):
        if not format_of(table.format).is_restartable:
            return f"`{table.full_name}` reads a {table.format}"
    return None
