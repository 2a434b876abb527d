"""Rules about batch models: models with a sink and only static inputs, which each run writes once."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.sinks.outputs import terminal_models
from sqlstream.errors import Finding
from sqlstream.project.files.files import PROJECT_FILE
from sqlstream.project.files.paths import join, plain_path
from sqlstream.project.formats.formats import format_of

ENDING = frozenset({"default", "available_now", "once"})
"""Triggers under which a stream ends, or that nobody has asked for: a batch does no less."""


@rule("batch-model")
def stream_words_in_batches(compiled: CompiledProject) -> Iterator[Finding]:
    """A batch model has no trigger and no output mode, because each run writes it once."""
    for model, _ in terminal_models(compiled):
        mode, trigger = model.config.output_mode, model.config.trigger
        if model.streaming:
            continue
        if mode != "append" and _is_its_own(model, "output_mode"):
            yield _nothing_to(model, "output_mode", mode, "the output is replaced as a whole, so there are no modes")
        if trigger.kind not in ENDING and _is_its_own(model, "trigger"):
            yield _nothing_to(model, "trigger", str(trigger), "there is one batch, at the start of the run")


@rule("batch-model")
def sinks_of_streams(compiled: CompiledProject) -> Iterator[Finding]:
    """A batch model cannot write to a Python sink of the project."""
    for model, output in terminal_models(compiled):
        if not model.streaming and output.format == "python":
            yield Finding(
                "batch-model",
                f"`{model.name}` is a batch model, which cannot write to sink `{output.sink}` of format "
                f"{output.format}",
                "all of its inputs are static, so every run writes the result as batch 0, and a batch_id "
                "cannot tell one run from the next",
                "use a file sink such as parquet, or a table; or read a stream (a source without mode: batch)",
                model.place_of("sink"),
            )


def _is_its_own(model: CompiledModel, key: str) -> bool:
    """Whether the model itself says `key`: a default for a whole folder is not meant for its batch models."""
    return model.place_of(key).path != PROJECT_FILE


def _nothing_to(model: CompiledModel, key: str, value: str, why: str) -> Finding:
    return Finding(
        "batch-model",
        f"{key} {value} has no effect on the batch model `{model.name}`",
        f"all of its inputs are static, so it is written once per run: {why}",
        f"remove {key}, or read a stream (a source without mode: batch)",
        model.place_of(key),
    )


@rule("shared-output")
def batch_places(compiled: CompiledProject) -> Iterator[Finding]:
    """A batch model replaces its whole output folder, so nothing else may use the folder."""
    for model, output in terminal_models(compiled):
        if model.streaming or not format_of(output.format).writes_files or not output.path:
            continue
        folder = plain_path(_storage(compiled), output.path).rstrip("/") + "/"
        inside = next((what for what, path in _places(compiled, model) if path.startswith(folder)), None)
        if inside is not None:
            yield Finding(
                "shared-output",
                f"`{model.name}` writes to `{output.path}`, which contains {inside}",
                "a batch model replaces its whole output folder, and moves the old one with all its contents "
                "to an archive",
                'use a separate folder, for example path: "{{ model.name }}" in the sink',
                model.place_of("sink"),
            )


def _places(compiled: CompiledProject, batch: CompiledModel) -> Iterator[tuple[str, str]]:
    """What else has a place of its own in the target's file systems, in words, and where."""
    storage, root = _storage(compiled), str(compiled.project.root)
    yield "the storage of the target", f"{plain_path(root, storage)}/"
    for model, output in terminal_models(compiled):
        yield from _written(model, output, storage, batch)
    for table in compiled.sources_of(batch.unique_id):
        if table.path:
            yield f"source `{table.full_name}`", plain_path(root, table.path)


def _written(model: CompiledModel, output: Output, storage: str, batch: CompiledModel) -> Iterator[tuple[str, str]]:
    if model.unique_id != batch.unique_id and output.path:
        yield f"the output of `{model.name}`", f"{plain_path(storage, output.path)}/"
    yield f"the checkpoint of `{model.name}`", plain_path(storage, model.config.checkpoint or "queries/") + "/"


def _storage(compiled: CompiledProject) -> str:
    return join(str(compiled.project.root), compiled.project.target.storage)
