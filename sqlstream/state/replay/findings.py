"""Why a past batch of a query cannot be replayed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted, quoted_list

BATCH, SOURCE, CHANGED, TEST = "replay-batch", "replay-source", "replay-changed", "replay-test"

SHOWN_FILES = 3
"""The number of missing files that a finding names."""


def unknown_batch(model: str, batch: int, known: Sequence[int], location: Location) -> Finding:
    """Returns the finding that the checkpoint does not have a batch. `known` are those that it has."""
    if not known:
        why, fix = "the query has not started a batch yet", f"run it first: `sqlstream run --select {model}`"
    elif batch in known:
        why, fix = "its entry in the checkpoint is incomplete", "replay another batch"
    elif batch > known[-1]:
        why, fix = f"the last batch is {known[-1]}", f"give a batch from {known[0]} to {known[-1]}"
    else:
        why = f"Spark has removed the offsets of the batches before {known[0]}"
        fix = f"give a batch from {known[0]} to {known[-1]}; to keep more, set spark.sql.streaming.minBatchesToRetain"
    return Finding(BATCH, f"{quoted(model)} has no batch {batch} to replay", why, fix, location)


def no_batches(model: str, why: str, location: Location) -> Finding:
    """Returns the finding that a query has no batches that could be replayed."""
    fix = f"`sqlstream show --select {model}` shows its rows for the current data"
    return Finding(BATCH, f"{quoted(model)} has no batches to replay", why, fix, location)


def unknown_offsets(model: str, table: str, location: Location) -> Finding:
    """Returns the finding that a source cannot read the data of a past batch again."""
    return Finding(
        SOURCE,
        f"{quoted(model)} cannot be replayed, because the source {quoted(table)} cannot read a past batch again",
        "only files, Kafka and Delta tables return the same rows for the same offsets",
        "write its rows to files or Kafka first, and replay the queries that read them",
        location,
    )


def unknown_files(model: str, table: str, batch: int, location: Location) -> Finding:
    """Returns the finding that the log of a source of files is incomplete."""
    return Finding(
        SOURCE,
        f"the files that batch {batch} of {quoted(model)} has read of {quoted(table)} are unknown",
        "an entry in the log of the source is missing or incomplete",
        f"`sqlstream state repair {model}` finds damage of the checkpoint; or replay a later batch",
        location,
    )


def gone_files(model: str, batch: int, files: Sequence[str], location: Location) -> Finding:
    """Returns the finding that files of a batch no longer exist."""
    more = len(files) - SHOWN_FILES
    named = ", ".join(files[:SHOWN_FILES]) + (f" and {more:,} more" if more > 0 else "")
    return Finding(
        "source-file-gone",
        f"batch {batch} of {quoted(model)} has read files that no longer exist",
        f"missing: {named}",
        "restore them at the same path, or replay a batch whose files still exist",
        location,
    )


def changed_project(model: str, changes: Sequence[str], location: Location) -> Finding:
    """Returns the finding that the project differs too much from the query that ran."""
    return Finding(
        CHANGED,
        f"{quoted(model)} cannot be replayed, because the project has changed since it ran",
        "; ".join(changes),
        "check out the project as it ran, for example with `git worktree`, and replay the batch there",
        location,
    )


def no_test(model: str, why: str, fix: str, location: Location) -> Finding:
    """Returns the finding that a batch cannot become a unit test."""
    return Finding(TEST, f"the batch of {quoted(model)} cannot be written as a unit test", why, fix, location)


def sql_note(names: Sequence[str], *, has_ended: bool) -> str:
    """Returns the note about models whose SQL is not that of the ledger: a batch that has ended is replayed with the
    SQL that ran, another one with that of the project.
    """
    if has_ended:
        return f"the SQL of {quoted_list(names)} has changed since; this is what the SQL that ran returns"
    return f"the batch has not ended; this is what it returns with the present SQL of {quoted_list(names)}"


def backfill_batch(model: str, batch: int, location: Location) -> Finding:
    """Returns the finding that a batch is one of a backfill."""
    return Finding(
        BATCH,
        f"batch {batch} of {quoted(model)} cannot be replayed, because `sqlstream backfill` wrote it",
        "its files or offsets are in backfills.json beside the checkpoint, not in the logs of the stream",
        "replay another batch",
        location,
    )
