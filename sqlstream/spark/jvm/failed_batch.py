"""The rows of the last batch of a query that failed, at an observation in its plan, for a report of what was wrong."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.spark.jvm.gateway import analyzed, execution_of, frame_of_plan, node_class, plan_nodes
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.plans import keeps_state

_BATCH_CHECK = "spark.sql.streaming.unsupportedOperationCheck"
"""The setting with which Spark refuses to run the plan of a stream, also that of one batch, without a query."""


def rows_of_failed_batch(query: StreamingQuery | None, frame: DataFrame, observation: str) -> DataFrame | None:
    """Returns the rows that `observation` has observed in the last batch of `query`, or in the batch query `frame`
    without one. They are read again. None if they depend on a state, which a second reading could change, or if this
    Spark does not show the plan.
    """

    def find() -> DataFrame | None:
        if query is None:
            return _observed(frame, analyzed(frame), observation)
        batch = execution_of(query).lastExecution()
        if batch is None:
            return None
        # the query has ended, but a query that restarts has its settings from the same session
        session = SparkSession(frame.sparkSession.sparkContext, batch.sparkSession().cloneSession())
        session.conf.set(_BATCH_CHECK, "false")
        return _observed(session.range(0), batch.logical(), observation)

    return call_internal(frame.sparkSession, "plan of a failed batch", find, lambda: None)


def _observed(frame: DataFrame, plan: Any, observation: str) -> DataFrame | None:
    for node in plan_nodes(plan):
        if node_class(node) == "CollectMetrics" and node.name() == observation:
            return None if keeps_state(node.child()) else frame_of_plan(frame, node.child())
    return None
