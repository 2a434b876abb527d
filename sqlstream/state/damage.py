"""Damage in a checkpoint that keeps Spark from resuming exactly: incomplete entries, missing files.

A power failure or a full disk can tear an entry. sqlstream can archive what belongs to an uncommitted batch, and Spark
then plans the batch again. It cannot archive what was committed, because nothing else records what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted
from sqlstream.state.batch_logs import (
    FILES,
    KAFKA,
    BatchLog,
    BatchLogs,
    is_complete_start,
    is_json,
    log_offsets,
    logged_files,
    source_forms,
)
from sqlstream.state.refusals import refresh_text
from sqlstream.state.repartitions import UNFINISHED, RepartitionBatch, last_repartition, unfinished


@dataclass(frozen=True)
class Damage:
    """One torn entry, the missing files of an uncommitted batch, or a `repartition` that was interrupted. `files` are
    the damaged or missing files in order. `archive` are the entries to archive so that the query can resume, empty if
    it cannot.
    """

    code: str
    files: tuple[str, ...]
    batch: int
    archive: tuple[str, ...]
    repartition: RepartitionBatch | None = None


def find_damage(logs: BatchLogs, missing: Callable[[Sequence[str]], Sequence[str]]) -> list[Damage]:
    """Returns the torn entries, or if there are none, an interrupted repartition or the missing files of the
    uncommitted batch. `missing` returns the URIs of files that do not exist.
    """
    state = _State(logs)
    return list(state.torn()) or list(state.repartition()) or list(state.missing_files(missing))


class _State:
    """The state that the logs record: the last committed batch, and the last log entry that it read of each file
    source.
    """

    def __init__(self, logs: BatchLogs) -> None:
        self._logs = logs
        torn = {*logs.commits.torn()}
        self._committed = max((number for number in logs.commits.names if number not in torn), default=-1)
        text = logs.offsets.texts.get(self._committed)
        is_known = text is not None and self._committed not in logs.offsets.torn()
        self._read = log_offsets(text) if text is not None and is_known else {}
        self._forms: dict[str, str] = {}
        for number, planned in logs.offsets.texts.items():
            if number not in logs.offsets.torn():
                self._forms |= source_forms(planned)

    def torn(self) -> Iterator[Damage]:
        logs = self._logs
        identity, text = logs.identity
        if text is not None and not is_json(text):  # Spark needs it to start a query on batches
            yield Damage("torn-checkpoint", (identity,), -1, ())
        for number in logs.commits.torn():
            yield self._torn(logs.commits, number, is_open=True)
        for log in filter(None, (logs.offsets, logs.sink)):
            for number in log.torn():
                yield self._torn(log, number, is_open=number > self._committed)
        for name, log in logs.sources.items():
            for number in self._torn_entries(name, log):
                is_new = number > self._read.get(name, self._committed if self._read else -1)
                yield self._torn(log, number, is_open=is_new and self._has_only_new_files(log, number))

    def _torn_entries(self, name: str, log: BatchLog) -> list[int]:
        """The torn entries of a source's log. Each kind of source has its own form; of others nothing is known."""
        form = self._forms.get(name)
        if form is None:  # no batch has been planned with this source
            return [number for number in log.torn() if not is_complete_start(log.texts[number])]
        if form == KAFKA and self._committed < 0:  # later Spark no longer reads the offsets that it started with
            return [number for number, text in log.texts.items() if not is_complete_start(text)]
        return log.torn() if form == FILES else []

    def _has_only_new_files(self, log: BatchLog, number: int) -> bool:
        """Returns whether a source's entry contains only new files, and the offsets log confirms it."""
        return not log.is_compact(number) and (self._committed < 0 or bool(self._read))

    def _torn(self, log: BatchLog, number: int, *, is_open: bool) -> Damage:
        """Returns the damage of an entry. Spark can plan an uncommitted batch again if the entry is in its plan."""
        path = log.path(number)
        is_plan = log is not self._logs.commits and log is not self._logs.sink
        archive = [*(self._uncommitted() if is_plan else ()), path] if is_open else []
        return Damage("torn-checkpoint", (path,), number, tuple(dict.fromkeys(archive)))

    def _uncommitted(self) -> list[str]:
        """Returns the entries of uncommitted batches in an order that makes an interruption safe: first those of a file
        sink, which accepts no other plan, then their offsets.
        """
        logs = [*([self._logs.sink] if self._logs.sink else []), self._logs.offsets]
        return [log.path(number) for log in logs for number in log.names if number > self._committed]

    def repartition(self) -> Iterator[Damage]:
        """Yields the last batch if it is a repartition that is not committed, or is not in the log of the sink yet."""
        found, sink = last_repartition(self._logs.offsets), self._logs.sink
        if found is None:
            return
        if found.number > self._committed:
            entry = self._logs.offsets.path(found.number)
            yield Damage(UNFINISHED, (entry,), found.number, (entry,), found)
        elif sink is not None and found.number - 1 in sink.names and found.number not in sink.names:
            yield Damage(UNFINISHED, (f"{sink.folder}/{found.number}",), found.number, (), found)

    def missing_files(self, missing: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[Damage]:
        logs, batch = self._logs, self._logs.offsets.last
        if batch <= self._committed or (logs.sink is not None and batch in logs.sink.names):
            return  # there is no uncommitted batch, or the sink has all of it and will skip it
        planned = log_offsets(logs.offsets.texts[batch])
        entries = [(logs.sources[name], number) for name in planned for number in self._new(name, planned[name])]
        files = [file for log, number in entries for file in logged_files(log.texts[number], number)]
        lost = missing(files)
        if lost:
            # A compact entry also lists files that earlier batches have read, which nothing else records.
            can_repair = not any(log.is_compact(number) for log, number in entries)
            paths = [*self._uncommitted(), *(log.path(number) for log, number in entries)] if can_repair else []
            yield Damage("source-file-gone", tuple(lost), batch, tuple(paths))

    def _new(self, name: str, last: int) -> list[int]:
        """Returns the entries of a source's log that the uncommitted batch reads."""
        log = self._logs.sources.get(name)
        first = self._read.get(name, -1) + 1
        return [] if log is None else [number for number in log.texts if first <= number <= last]


def damage_finding(model: str, damage: Damage, location: Location) -> Finding:
    """Returns the finding that the query of `model` cannot resume."""
    if damage.repartition is not None:
        batch, lacking = damage.repartition, None if damage.archive else damage.files[0]
        return unfinished(model, batch.number, batch.before, batch.after, lacking, location)
    first, more = damage.files[0], len(damage.files) - 1
    named = f"{first} and {more:,} more" if more else first
    repair = f"`sqlstream state repair {model}`"
    restart = refresh_text(model)
    if damage.code == "source-file-gone":
        files = "missing files" if more else "a missing file"
        again = f"{repair} archives its plan, and the next run reads the files that exist"
        return Finding(
            damage.code,
            f"batch {damage.batch} of {quoted(model)} started with {files}",
            f"when Spark repeats the batch, it would silently skip {named} and never read it later",
            f"restore {'them' if more else 'it'}; or {again if damage.archive else restart}",
            location,
        )
    return Finding(
        damage.code,
        f"the checkpoint of {quoted(model)} has an incomplete entry",
        f"{named} is cut off, as after a power failure or on a full disk, and Spark needs it to continue",
        f"{repair} archives the uncommitted data, and the next run continues from there"
        if damage.archive
        else f"restore the file from a backup; or {restart}",
        location,
    )
