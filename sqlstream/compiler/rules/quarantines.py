"""Rules on quarantines: which queries can write the rows that violate a data test to another sink."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.rewrite.data_tests import QUARANTINE_COLUMNS
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.compiler.rules.sinks.kinds import sink_of_one_query, unshared_sink
from sqlstream.project.wording import quoted_list

_OTHERWISE = "use on_violation: drop or fail"


@rule("quarantine")
def misplaced_quarantines(compiled: CompiledProject) -> Problems:
    """Only a query of micro-batches can write rows to a quarantine."""
    for model in compiled.models.values():
        problem = _misplaced(model) if model.quarantining else None
        if problem is not None:
            why, fix = problem
            for test in model.quarantining:
                message = f"the data test `{test.name}` of `{model.name}` cannot quarantine rows"
                yield Problem(message, why, fix, test.location)
        elif model.quarantining:
            yield from _unfit(compiled, model)


def _misplaced(model: CompiledModel) -> tuple[str, str] | None:
    """Returns why the tests of a model cannot quarantine rows, and what to do instead."""
    if model.output is None:
        why = f"`{model.name}` is a view: the queries that read it have its rows, and it has no query of its own"
        return why, f"{_OTHERWISE}; or give the model a sink, and read its rows with materialized='stored'"
    if not model.streaming:
        why = f"`{model.name}` is a batch model, and only a stream has micro-batches that are written to two sinks"
        return why, _OTHERWISE
    if model.config.output_mode == "complete":
        why = "in complete mode each batch has all rows again, also those that are in the quarantine already"
        return why, f"{_OTHERWISE}, or output_mode='update'"
    facts = model.config.trigger.facts
    if not facts.has_micro_batches:
        why = f"the query has a {facts.words} trigger, and so no micro-batches that are written to two sinks"
        return why, f"{_OTHERWISE}, or a micro-batch trigger such as trigger='1 second'"
    if model.config.quarantine_sink is None:
        why = f"`{model.name}` has no quarantine_sink for these rows"
        return why, "set quarantine_sink to one of the sinks in sinks.yml, in the model's config or in project.yml"
    return None


def _unfit(compiled: CompiledProject, model: CompiledModel) -> Iterator[Problem]:
    quarantine = compiled.quarantines.get(model.unique_id)
    for output in model.outputs:
        needs = unshared_sink(compiled, output)
        if needs:
            yield Problem(
                f"`{model.name}` has a quarantine, but cannot write its other rows to sink `{output.sink}`",
                f"{needs} gets its rows from Spark, which writes to one sink in each query",
                f"{_OTHERWISE}; or use a sink of files, Kafka, a database, Delta Lake or Iceberg",
                model.location_of("sink"),
            )
    for output in quarantine.outputs if quarantine is not None else ():
        needs = sink_of_one_query(compiled, output)
        if needs:
            yield Problem(
                f"sink `{output.sink}` cannot be the quarantine of `{model.name}`",
                f"{needs} gets its rows from a query of its own, and the query of the model writes the quarantine",
                "use a sink of files, Kafka, a database, Delta Lake or Iceberg, or a function in python/",
                model.location_of("quarantine_sink"),
            )
    names = {name for name, _ in QUARANTINE_COLUMNS}
    taken = [column.name for column in compiled.columns.get(model.unique_id) or () if column.name.lower() in names]
    if taken:
        yield Problem(
            f"`{model.name}` has columns with the names of those that a quarantine adds",
            f"a quarantined row also has {quoted_list(sorted(names))}, but the model has {quoted_list(taken)}",
            "rename the columns of the model",
            model.location_of("quarantine_sink"),
        )
