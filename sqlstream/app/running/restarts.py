"""Starts a query over the stored outputs that exist by then, and restarts a failed query on its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlstream.app.running.ledgers import known_ids, write_before_start
from sqlstream.app.running.ready import CheckContext, CheckedQuery, storage_location
from sqlstream.app.running.stored_outputs import is_written, reads_static_outputs
from sqlstream.errors import FindingsError
from sqlstream.location import Place
from sqlstream.spark.running.prepare import PreparedQuery
from sqlstream.spark.running.start import StartOrder
from sqlstream.spark.storage.storage import storage_problems
from sqlstream.state.layout import ledger_path
from sqlstream.state.refusals import input_replaced, replaced_inputs


class Restarts:
    """Returns the orders to start and restart the queries of a run, which are `ready`."""

    def __init__(self, ready: Sequence[CheckedQuery], checks: CheckContext) -> None:
        self._checks = checks
        self._ready = {item.query.model.name: item for item in ready}

    def query(self, name: str) -> PreparedQuery:
        """Returns the query of the model `name` as it started last."""
        return self._ready[name].query

    def following(self, order: StartOrder) -> StartOrder | None:
        """Returns the order of a query that reads stored outputs of this run, None if they do not exist yet.

        Raises: FindingsError.
        """
        model = order.query.model
        compiled = self._checks.outputs.resolve([model.unique_id])
        if not all(map(is_written, compiled.tables_of(model.unique_id))):
            return None
        self._ready[model.name] = ready = self._ready[model.name].prepared_over(compiled, self._checks)
        return ready.order(self._checks)

    def __call__(self, order: StartOrder) -> StartOrder:
        """Returns the order of the next start. Raises: FindingsError if the checkpoint or an output is damaged."""
        name = order.query.model.name
        ready = self._ready[name]
        if reads_static_outputs(ready.query.compiled, ready.query.model):
            compiled = self._checks.outputs.resolve([ready.query.model.unique_id])  # files may have been replaced
            self._ready[name] = ready = ready.prepared_over(compiled, self._checks)
            order = ready.order(self._checks)
        if order.is_fresh:
            self._ready[name] = self._next_version(ready)
            return self._ready[name].order(self._checks)
        if not order.is_batch:
            ready.check_again(self._checks)
            self._check_inputs(ready)
        return order

    def _check_inputs(self, ready: CheckedQuery) -> None:
        """Checks that no topic or table was replaced while the query did not run. Raises: FindingsError."""
        replaced = replaced_inputs(known_ids(ready), ready.query.ask_input_ids())
        if replaced:
            model, path = ready.query.model, ledger_path(ready.root, ready.plan.version)
            place = Place(model.file.location)
            raise FindingsError([input_replaced(model.name, each, path, place) for each in replaced])

    def _next_version(self, ready: CheckedQuery) -> CheckedQuery:
        """Returns the query with a new checkpoint, and writes its ledger."""
        fresh = replace(ready, plan=replace(ready.plan, version=ready.plan.version + 1))
        with storage_problems(
            ready.root, storage_location(self._checks.loaded, ready.query.model), self._checks.secrets
        ):
            fresh.lock_version(self._checks)
            write_before_start(fresh, self._checks)
        return fresh
