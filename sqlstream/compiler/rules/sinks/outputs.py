"""Rules about what terminal models write."""

from __future__ import annotations

from collections.abc import Iterable

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.project.files.paths import join, plain_path
from sqlstream.project.formats.formats import format_of

OWN_PLACE = {
    "sink": 'give each its own, for example path: "{{ model.name }}" (or table:) in the sink',
    "checkpoint": "give each its own, or remove `checkpoint`: sqlstream then names it after the model",
}
"""What to do about two queries that share a place, by the key that says it."""


@rule("invalid-value")
def path_options(compiled: CompiledProject) -> list[Finding]:
    """A path in the options would be relative to the working directory, and a full refresh could not change it."""
    by_models = [
        (f"`{model.name}` sets the path of sink `{output.sink}` as an option", model.place_of("options"))
        for model, output in terminal_models(compiled)
        if _is_path_among(model.config.options)
    ]
    by_sinks = [
        (f"sink `{sink.name}` sets its path as an option", sink.places.get("options", sink.location))
        for sink in compiled.project.sinks
        if _is_path_among(sink.options)
    ]
    return [
        Finding(
            "invalid-value",
            what,
            "options go to Spark unchanged, so the path would be relative to the working directory",
            'write it as a key of the sink, for example path: "{{ model.name }}"',
            location,
        )
        for what, location in (*by_models, *by_sinks)
    ]


@rule("missing-path")
def missing_sink_paths(compiled: CompiledProject) -> list[Finding]:
    """A file sink needs a path."""
    return [
        Finding(
            "missing-path",
            f"sink `{output.sink}` has no path",
            f"a sink of {output.format} files writes to a folder",
            'add a path, for example path: "{{ model.name }}"',
            output.location,
        )
        for output in declared_outputs(compiled)
        if format_of(output.format).writes_files and not output.path and not _is_path_among(output.options)
    ]


def _is_path_among(options: Iterable[str]) -> bool:
    return any(name.lower() == "path" for name in options)


@rule("output-mode")
def output_modes(compiled: CompiledProject) -> list[Finding]:
    """Spark refuses update and complete mode for file sinks."""
    return [
        Finding(
            "output-mode",
            f"`{model.name}` streams in {model.config.output_mode} mode, which sink `{output.sink}` does not support",
            f"{output.format} files support only append mode",
            "use output_mode='append' (an aggregation then needs a watermark), or a sink that supports updates",
            model.place_of("output_mode"),
        )
        for model, output in terminal_models(compiled)
        if model.streaming and format_of(output.format).writes_files and model.config.output_mode != "append"
    ]


@rule("shared-output")
def shared_outputs(compiled: CompiledProject) -> list[Finding]:
    """Two queries must not share a checkpoint, an output folder or a table."""
    findings: list[Finding] = []
    paths: dict[str, str] = {}
    tables: dict[str, str] = {}
    checkpoints: dict[str, str] = {}
    storage = join(str(compiled.project.root), compiled.project.target.storage)
    for model, output in terminal_models(compiled):
        if format_of(output.format).writes_files and output.path:
            first = paths.setdefault(plain_path(storage, output.path), model.name)
            findings += _shared(model, first, "output path", output.path, "sink")
        if output.table:
            first = tables.setdefault(output.table.replace("`", "").lower(), model.name)
            findings += _shared(model, first, "table", output.table, "sink")
        checkpoint = model.config.checkpoint or f"queries/{model.query_id}"
        first = checkpoints.setdefault(plain_path(storage, checkpoint), model.name)
        findings += _shared(model, first, "checkpoint", checkpoint, "checkpoint")
    return findings


def _shared(model: CompiledModel, first: str, what: str, value: str, key: str) -> list[Finding]:
    if first == model.name:
        return []
    return [
        Finding(
            "shared-output",
            f"`{model.name}` and `{first}` have the same {what} `{value}`",
            "Spark keeps one log per checkpoint and per output folder, so the two queries would lose each other's data",
            OWN_PLACE[key],
            model.place_of(key),
        )
    ]


def terminal_models(compiled: CompiledProject) -> list[tuple[CompiledModel, Output]]:
    """Returns each terminal model with its output."""
    return [(model, model.output) for model in compiled.models.values() if model.output is not None]


def declared_outputs(compiled: CompiledProject) -> list[Output]:
    """Returns the output of each terminal model, and of each sink that no model writes to."""
    return [*(output for _, output in terminal_models(compiled)), *compiled.unused_outputs]
