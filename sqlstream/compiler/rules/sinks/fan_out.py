"""Rules about queries that write each batch to several sinks."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, rule
from sqlstream.compiler.rules.sinks.kinds import python_sink
from sqlstream.errors import Finding
from sqlstream.project.formats.formats import FORMATS, format_of

SEPARATE = "use fan_out='separate', which runs a query for each sink"


@output_rule("fan-out")
def unshared_sinks(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Some sinks need a separate query."""
    if not model.also or not model.streaming:
        return
    made = python_sink(compiled, output)
    is_class = made is not None and made.kind == "class"
    if is_class or output.format not in FORMATS or format_of(output.format).needs_separate_query:
        what = f"the class `{output.python}`" if is_class else f"a sink of format {output.format}"
        yield Problem(
            f"`{model.name}` cannot write to sink `{output.sink}` from a shared query",
            f"{what} gets its rows from Spark, which writes to one sink in each query",
            f"{SEPARATE}; or remove `{output.sink}` from the sinks of the model",
            model.place_of("sink"),
        )


@rule("fan-out")
def shared_batch_models(compiled: CompiledProject) -> Problems:
    """A batch model has no micro-batches to share."""
    return [
        Problem(
            f"`{model.name}` sets fan_out: shared, but it is a batch model",
            "only a stream has micro-batches that one query can write to several sinks",
            SEPARATE,
            model.place_of("fan_out"),
        )
        for model in compiled.models.values()
        if model.also and not model.streaming
    ]


@rule("continuous-trigger", "real-time-trigger")
def shared_triggers(compiled: CompiledProject) -> Problems:
    """A shared query needs micro-batches."""
    for model in compiled.models.values():
        kind = model.config.trigger.kind
        if model.also and model.streaming and kind in ("continuous", "real_time"):
            trigger = f"{kind.replace('_', '-')} trigger"
            yield Finding(
                trigger.replace(" ", "-"),
                f"`{model.name}` writes to several sinks from a shared query with a {trigger}",
                "the query writes each micro-batch to all sinks, and this trigger has no micro-batches",
                f"use a micro-batch trigger, such as trigger='1 second'; or {SEPARATE}",
                model.place_of("trigger"),
            )
