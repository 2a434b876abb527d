"""Rules about the sinks that get a run's metrics and alerts as rows."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.compiler.rules.sinks.kinds import python_sink
from sqlstream.project.formats.formats import format_of


@rule("metrics-sink")
def unfit_metrics_sinks(compiled: CompiledProject) -> Problems:
    """Rows of metrics are added to a sink in small batches, without a query of Spark."""
    yield from _unfit_sinks(compiled, compiled.metrics, "metrics")


@rule("alerts-sink")
def unfit_alerts_sinks(compiled: CompiledProject) -> Problems:
    """Rows of alerts are added to a sink in small batches, without a query of Spark."""
    yield from _unfit_sinks(compiled, compiled.alerts, "alerts")


def _unfit_sinks(compiled: CompiledProject, model: CompiledModel | None, rows: str) -> Problems:
    for output in model.outputs if model is not None else ():
        made = python_sink(compiled, output)
        is_class = made is not None and made.kind == "class"
        if model is not None and (is_class or format_of(output.format).needs_separate_query):
            what = f"the class `{output.python}`" if is_class else f"a sink of format {output.format}"
            yield Problem(
                f"{rows} cannot be written to sink `{output.sink}`",
                f"{what} gets its rows from a streaming query of Spark, and {rows} are not one",
                "use a sink of files, Kafka, a database, Delta Lake or Iceberg, or a function in python/",
                model.place_of("sink"),
            )
