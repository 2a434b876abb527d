"""Decides when a query starts that reads the stored outputs of other queries of the same run."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlstream.spark.running.query_run import QueryRun
from sqlstream.state.runs.events import Status

CHECK_SECONDS = 0.5
"""The time between two checks whether an output exists, whose query runs until it is stopped."""


def must_wait(run: QueryRun, runs: Sequence[QueryRun]) -> bool:
    """Returns whether `run` waits: for the end of a query whose output it reads, or for its start if it does not end by
    itself, or for the next check whether that output exists.
    """
    if run.checked_at is not None and time.monotonic() - run.checked_at < CHECK_SECONDS:
        return True
    return any(_is_unready(writer) for writer in writers_of(run, runs))


def _is_unready(writer: QueryRun) -> bool:
    return writer.result is None and (writer.ends or writer.query is None)


def writers_of(run: QueryRun, runs: Sequence[QueryRun]) -> list[QueryRun]:
    """Returns the queries of the same run whose stored outputs `run` reads."""
    return [each for each in runs if each.name in run.order.after]


def reason_to_skip(run: QueryRun, runs: Sequence[QueryRun], *, has_inputs: bool) -> str | None:
    """Returns why `run` cannot start in this run, None if it can, now or later. `has_inputs`: its inputs exist."""
    writers = writers_of(run, runs)
    failed = [writer.name for writer in writers if writer.result and writer.result.status in _FAILED]
    if failed:
        return f"{failed[0]}, whose stored output it reads, failed or was skipped"
    if not has_inputs and all(writer.result for writer in writers):
        return f"the stored output of {', '.join(writer.name for writer in writers)} does not exist yet"
    return None


_FAILED = (Status.ERROR, Status.SKIPPED)
