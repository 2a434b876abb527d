"""Restarts a failed query on its checkpoint, or with a new one if Spark cannot resume it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlstream.app.running.ledgers import write_before_start
from sqlstream.app.running.ready import CheckContext, CheckedQuery, storage_location
from sqlstream.spark.running.start import StartOrder
from sqlstream.spark.storage.storage import storage_problems


class Restarts:
    """Returns the orders to restart the queries of a run."""

    def __init__(self, ready: Sequence[CheckedQuery], checks: CheckContext) -> None:
        self._checks = checks
        self._ready = {item.query.model.name: item for item in ready}

    def __call__(self, order: StartOrder) -> StartOrder:
        """Returns the order of the next start. Raises: FindingsError if the checkpoint is damaged."""
        name = order.query.model.name
        ready = self._ready[name]
        if order.is_fresh:
            self._ready[name] = self._next_version(ready)
            return self._ready[name].order(self._checks)
        if not order.is_batch:
            ready.check_whole(self._checks)  # the failed start may have damaged the checkpoint
        return order

    def _next_version(self, ready: CheckedQuery) -> CheckedQuery:
        """Returns the query with a new checkpoint, and writes its ledger."""
        fresh = replace(ready, plan=replace(ready.plan, version=ready.plan.version + 1))
        with storage_problems(
            ready.root, storage_location(self._checks.loaded, ready.query.model), self._checks.secrets
        ):
            write_before_start(fresh, self._checks)
        return fresh
