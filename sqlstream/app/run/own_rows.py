"""Writes what runs say about themselves, metrics and alerts, to sinks of the project."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sqlstream.app.alerts.payloads import ALERTS_SCHEMA
from sqlstream.app.loading.load import Loaded
from sqlstream.app.observe.metrics_rows import METRICS_SCHEMA
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.target_storage import place_of_output
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.own_rows import OwnRows, OwnRowsWriter

METRICS_ROWS, ALERT_ROWS = OwnRows("metrics", METRICS_SCHEMA), OwnRows("alerts", ALERTS_SCHEMA)

Write = Callable[[int, Sequence[tuple[object, ...]]], None]
"""Writes the batch with a number. The same number again is the same batch."""


def write_own_rows(
    loaded: Loaded, model: CompiledModel | None, rows: OwnRows, runtime: SparkRuntime, secrets: Secrets
) -> Write:
    """Returns the function that writes rows of metrics or alerts to their sink."""
    if model is None:
        return lambda _number, _rows: None
    place = place_of_output(loaded, model.outputs[0], version=1, published=())
    return OwnRowsWriter(rows, runtime.session, model, place, secrets).write


@contextmanager
def writing_alerts(loaded: Loaded, secrets: Secrets) -> Iterator[Write]:
    """Starts Spark for the body, which can write rows of alerts to their sink. Raises: FindingsError."""
    nodes = [model.unique_id for model in filter(None, [loaded.compiled.alerts])]
    with spark_session(loaded, secrets, nodes=nodes) as runtime:
        yield write_own_rows(loaded, loaded.compiled.alerts, ALERT_ROWS, runtime, secrets)
