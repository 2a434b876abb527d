"""Where each version of a query is: its last commit, its watermark, and its offset in each source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlstream.state.batch_logs import (
    FILES,
    OFFSETS_LINES,
    form_of,
    from_compact,
    is_complete,
    last_entry,
    read_until,
    source_offsets,
    watermark_of,
)
from sqlstream.state.checkpoints import ListedFiles, ReadableFiles, read_log, read_version
from sqlstream.state.layout import checkpoint_path
from sqlstream.state.ledger import Ledger, SourceUse


class DatedFiles(ListedFiles, Protocol):
    """A folder tree that can be read and listed, with the times of its files."""

    def modified(self, path: str) -> float | None:
        """Returns when the file was written, in seconds since 1970, None if it does not exist."""


DatedFilesOf = Callable[[str], tuple[DatedFiles, str]]
"""Returns the files at a path, and the path in the form that they accept."""


@dataclass(frozen=True)
class SourcePosition:
    """How far a version has read one source. `key` is its name or position in the checkpoint; `use` is its reader in
    the ledger, None if that is unknown. `offset` is Spark's JSON value, None before the first commit.

    `read` has the URIs of the files that were read, with the times of their last changes (ms since 1970). It is None
    for other sources, and if the log of the source is incomplete.
    """

    key: str
    use: SourceUse | None
    offset: Any = None
    read: Mapping[str, int] | None = None

    @property
    def form(self) -> str:
        """The form of the offset, empty if unknown."""
        return form_of(self.offset)


@dataclass(frozen=True)
class VersionPosition:
    """Where one version of a query is. `since` is when its first query started (UTC, ISO 8601), None without a ledger.

    `batch` is the last committed batch, and `committed_at` when its commit was written (seconds since 1970).
    `open_batch` began at `open_since` (seconds since 1970) and is not committed. `watermark_ms` is that of the last
    committed batch (ms since 1970), None if there is none yet. `problem` says in one line what could not be read.
    """

    version: int
    since: str | None = None
    batch: int | None = None
    committed_at: float | None = None
    open_batch: int | None = None
    open_since: float | None = None
    watermark_ms: int | None = None
    sources: tuple[SourcePosition, ...] = ()
    problem: str | None = None


def read_position(files_of: DatedFilesOf, root: str, version: int) -> VersionPosition:
    """Returns where a version of the query under `root` is. Raises: OSError, Spark's errors."""
    files, folder = files_of(root)
    checkpoint = checkpoint_path(folder, version)
    state = read_version(files_of, root, version)
    begun = last_entry(files.names(f"{checkpoint}/offsets"))
    is_open = begun > state.last_commit
    batch = state.last_commit if state.last_commit >= 0 else None
    text = files.read_text(f"{checkpoint}/offsets/{batch}") if batch is not None else None
    is_readable = text is not None and is_complete(text, OFFSETS_LINES)
    problem = state.unreadable and f"its ledger cannot be read: {state.unreadable}"
    if batch is not None and not is_readable:
        problem = f"the entry of batch {batch} in {checkpoint}/offsets is missing or incomplete"
    known = text if text is not None and is_readable else None
    return VersionPosition(
        version,
        _since(state.ledger),
        batch,
        files.modified(f"{checkpoint}/commits/{batch}") if batch is not None else None,
        begun if is_open else None,
        files.modified(f"{checkpoint}/offsets/{begun}") if is_open else None,
        watermark_of(known) if known else None,
        tuple(_sources(files, checkpoint, state.ledger, known)),
        problem,
    )


def _since(ledger: Ledger | None) -> str | None:
    if ledger is None:
        return None
    return ledger.history[0].at if ledger.history else ledger.written_at


def _sources(
    files: ReadableFiles, checkpoint: str, ledger: Ledger | None, text: str | None
) -> Iterator[SourcePosition]:
    uses = ledger.identity.sources if ledger else ()
    if text is None:
        yield from (SourcePosition(use.name, use) for use in uses)
        return
    for key, use, offset in assigned(dict(source_offsets(text)), uses):
        is_files = form_of(offset) == FILES
        log = read_log(files, f"{checkpoint}/sources/{key}", from_compact) if is_files else None
        yield SourcePosition(key, use, offset, read_until(log, offset["logOffset"]) if log else None)


def assigned(offsets: Mapping[str, Any], uses: Sequence[SourceUse]) -> Iterator[tuple[str, SourceUse | None, Any]]:
    """Yields each source of a checkpoint: its name or position there, its reader in the ledger, and its offset.

    A checkpoint without source evolution has positions, in the order of the readers. One with it has names, and keeps
    those of readers that the query no longer has: these are left out.
    """
    if any(not key.isdigit() for key in offsets):
        # Without a ledger, nobody knows which of the names the query still has.
        by_name: dict[str, SourceUse | None] = {use.name: use for use in uses} or dict.fromkeys(offsets)
        yield from ((key, use, offsets.get(key)) for key, use in by_name.items())
        return
    in_order: Sequence[SourceUse | None] = uses if len(uses) == len(offsets) else [None] * len(offsets)
    yield from ((key, use, offset) for (key, offset), use in zip(offsets.items(), in_order, strict=True))
