"""The watermarks of the operators of a query, kept from one start to the next.

Spark's checkpoint has only the watermark of the whole query. After a restart, an operator without new rows has none, so
the lowest cannot advance (WatermarkTracker of Spark 4.3): scheduled runs over two streams that get rows in turn would
never emit a row. Without Spark's internals, nothing is kept.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.digest import digest
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import can_change_queries, operator_watermarks
from sqlstream.spark.queries.start import StartOrder
from sqlstream.spark.storage.storage import Storage, storage_for
from sqlstream.state.batch_logs import last_entry

FILE = "sqlstream-watermarks.json"
"""The file in the checkpoint: the batch after which the watermarks were read, and what they belong to."""

KEEP_SECONDS = 10.0
"""The shortest time between two writes during a run. A killed run loses at most this, and then waits for new rows."""

START_SECONDS = 30.0
"""The longest time until a started query has read its checkpoint."""

POLL_SECONDS = 0.002
"""The interval of checks until then: shorter than the planning of any batch, after which it would be too late."""

logger = logging.getLogger("sqlstream.watermarks")


class KeptWatermarks:
    """Keeps the watermarks of one started `query`, and restores those of its last start."""

    def __init__(self, order: StartOrder, query: StreamingQuery) -> None:
        self._order, self._query = order, query
        self._written_at = -KEEP_SECONDS
        self._last: list[int | None] = []
        self._is_restored = False
        self._problem: str | None = None
        identity = order.query.identity
        self._owner = digest(dict(sorted(identity.fingerprints.items())), tuple(use.name for use in identity.sources))

    def restore(self) -> None:
        """Restores the watermarks in a thread, before the first batch ends, because the query may take long to read its
        checkpoint. Does nothing if they belong to another query, or to a batch that the checkpoint no longer has.
        """
        work = copy_context().run
        threading.Thread(target=work, args=(self._restore,), name="watermarks", daemon=True).start()

    def _restore(self) -> None:
        why = f"the query did not read its checkpoint within {START_SECONDS:g} s"
        try:
            has_raised = self._is_restored = self._raise()
        except Exception as error:  # the query can run without them
            logger.exception("the watermarks of %s were not restored", self._order.query.model.name)
            why = next(iter(str(error).strip().splitlines()), type(error).__name__)
            has_raised, self._is_restored = False, not isinstance(error, (OSError, *SPARK_ERRORS))  # or it is damaged
        if not has_raised and _is_active(self._query):
            self._problem = f"the watermarks of its inputs were not restored, so it waits for new rows of each: {why}"

    def _raise(self) -> bool:
        storage, folder = self._storage()
        kept = json.loads(storage.read_text(f"{folder}/{FILE}") or "{}")
        if kept.get("query") != self._owner:
            return True
        committed = last_entry(storage.names(f"{folder}/commits"))
        # a later batch than the last one: the checkpoint was repaired or restored since
        return kept["batch"] > committed or raise_watermarks(self._query, kept["watermarks"])

    def take_problem(self) -> str | None:
        """Returns once why the watermarks could not be restored, if so."""
        problem, self._problem = self._problem, None
        return problem

    def keep(self, batch: int, *, at_end: bool = False) -> None:
        """Writes the watermarks after `batch` has ended; during a run only from time to time. Keeps those of the last
        run until they are restored.
        """
        if not self._is_restored or (not at_end and time.monotonic() - self._written_at < KEEP_SECONDS):
            return
        self._written_at = time.monotonic()
        with suppress(OSError, *SPARK_ERRORS):
            values = watermarks_of(self._query)
            if not values or values == self._last:
                return
            storage, folder = self._storage()
            text = json.dumps({"query": self._owner, "batch": batch, "watermarks": values})
            storage.write_text(f"{folder}/{FILE}", text)
            self._last = values

    def _storage(self) -> tuple[Storage, str]:
        return storage_for(self._order.checkpoint or "", self._order.query.frame.sparkSession)


def watermarks_of(query: StreamingQuery) -> list[int | None]:
    """Returns the watermarks of the operators of `query` in ms since 1970; none if it has less than two, or if this
    Spark hides them.
    """
    found = operator_watermarks(query)
    values = found.values() if found is not None else []
    return values if len(values) > 1 else []


def raise_watermarks(query: StreamingQuery, values: Sequence[int | None]) -> bool:
    """Raises the watermarks of a query that has just started to `values`, before its first batch ends. Returns whether
    the query has read its checkpoint in time.
    """
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and query.isActive:
        found = operator_watermarks(query)
        if found is not None:
            found.raise_to(values)
            return True
        time.sleep(POLL_SECONDS)
    return False


def _is_active(query: StreamingQuery) -> bool:
    with suppress(*SPARK_ERRORS):
        return query.isActive
    return False


def kept_watermarks(order: StartOrder, query: StreamingQuery) -> KeptWatermarks | None:
    """Returns what keeps the watermarks of `query`, None if it has no state, or if this Spark hides them."""
    is_fit = order.checkpoint is not None and not order.is_fresh and order.query.identity.stateful
    return KeptWatermarks(order, query) if is_fit and can_change_queries(order.query.frame.sparkSession) else None
