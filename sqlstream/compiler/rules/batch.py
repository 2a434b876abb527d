"""Rules about batch models: models with a sink and only static inputs, which each run writes once."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, terminal_models
from sqlstream.compiler.rules.sinks.kinds import python_sink
from sqlstream.project.configuration.trigger import Trigger
from sqlstream.project.files.files import PROJECT_FILE
from sqlstream.project.files.paths import join, plain_path
from sqlstream.project.formats.formats import format_of


@output_rule("batch-model")
def stream_words_in_batches(_: CompiledProject, model: CompiledModel, __: Output) -> Problems:
    """A batch model has no trigger and no output mode, because each run writes it once."""
    if model.streaming:
        return
    mode, trigger = model.config.output_mode, model.config.trigger
    is_for_batches = trigger.facts.ends or trigger == Trigger()
    settings = {
        "output_mode": (mode != "append", mode, "the output is replaced as a whole, so there are no modes"),
        "trigger": (
            not is_for_batches,
            trigger,
            "there is one batch, at the start of the run",
        ),
    }
    for key, (is_for_streams, value, why) in settings.items():
        # the default of a whole folder is not meant for its batch models
        if is_for_streams and model.location_of(key).path != PROJECT_FILE:
            yield Problem(
                f"{key} {value} has no effect on the batch model `{model.name}`",
                f"all of its inputs are static, so it is written once per run: {why}",
                f"remove {key}, or read a stream (a source without mode: batch)",
                model.location_of(key),
            )


@output_rule("batch-model")
def sinks_of_streams(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A batch model cannot write with a class of the project."""
    made = python_sink(compiled, output)
    if not model.streaming and made is not None and made.kind == "class":
        yield Problem(
            f"`{model.name}` is a batch model, which cannot write to sink `{output.sink}` with the class "
            f"`{output.python}`",
            "all of its inputs are static, and Spark passes only the rows of streams to such a class",
            "write with a function of (rows, batch), or read a stream (a source without mode: batch)",
            model.location_of("sink"),
        )


@output_rule("shared-output")
def batch_paths(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A batch model, or a stream in complete mode, replaces its whole output folder, so nothing else may use it."""
    replaces = not model.streaming or model.writes_snapshots_to(output)
    if not replaces or not format_of(output.format).writes_files or not output.path:
        return
    # The slash at the end keeps `out/orders_2` from counting as a part of `out/orders`.
    folder = plain_path(_storage(compiled), output.path).rstrip("/") + "/"
    inside = next((what for what, path in _other_paths(compiled, model) if path.startswith(folder)), None)
    if inside is not None:
        yield Problem(
            f"`{model.name}` writes to `{output.path}`, which contains {inside}",
            "a batch model replaces its whole output folder, and moves the old one with all its contents to an archive"
            if not model.streaming
            else "in complete mode each batch replaces the whole output folder",
            'use a separate folder, for example path: "{{ model.name }}" in the sink',
            model.location_of("sink"),
        )


def _other_paths(compiled: CompiledProject, batch: CompiledModel) -> Iterator[tuple[str, str]]:
    """Yields everything else that has a path in the target's file systems: a description, and the path."""
    storage, root = _storage(compiled), str(compiled.project.root)
    yield "the storage of the target", f"{plain_path(root, storage)}/"
    for model, output in terminal_models(compiled):
        if model.unique_id != batch.unique_id and output.path:
            yield f"the output of `{model.name}`", f"{plain_path(storage, output.path)}/"
        checkpoint = model.config.checkpoint or "queries/"
        yield f"the checkpoint of `{model.name}`", f"{plain_path(storage, checkpoint)}/"
    for table in compiled.tables_of(batch.unique_id):
        if table.path:
            yield table.described, plain_path(root, table.path)


def _storage(compiled: CompiledProject) -> str:
    return join(str(compiled.project.root), compiled.project.target.storage)
