"""Rules about models and their outputs: where they write, in which mode, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.options import has_path_option
from sqlstream.compiler.rules.rule import Problem, Problems, declared_outputs, output_rule, rule, terminal_models
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.errors import Severity
from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.project.files.paths import is_absolute, join, plain_path
from sqlstream.project.formats.formats import format_of

OWN_PATH = {
    "sink": 'give each its own, for example path: "{{ model.name }}" (or table:) in the sink',
    "checkpoint": "give each its own, or remove `checkpoint`: sqlstream then names it after the model",
}
"""How to separate two queries that share a path or table, by the key that sets it."""

_OVERWRITES = "they would overwrite each other's rows"
_ONE_LOG = "Spark keeps one log per checkpoint and per output folder, so the two queries would lose each other's data"


@rule("no-models", severity=Severity.WARNING)
def no_models(compiled: CompiledProject) -> Problems:
    """A project needs an enabled model."""
    if any(model.file.declared_at is None for model in compiled.models.values()):
        return
    is_disabled = bool(compiled.project.models)
    yield Problem(
        "all models of the project are disabled" if is_disabled else "the project has no models",
        "a model is a .sql or .py file in models/",
        "enable one of them" if is_disabled else "add a SELECT in a file such as models/first.sql",
        None,
    )


@rule("invalid-value")
def path_options(compiled: CompiledProject) -> Problems:
    """A path in the options would be relative to the working directory, and a full refresh could not change it."""
    by_models = [
        (f"`{model.name}` sets the path of sink `{output.sink}` as an option", model.location_of("options"))
        for model, output in terminal_models(compiled)
        if has_path_option(model.config.options)
    ]
    by_sinks = [
        (f"sink `{sink.name}` sets its path as an option", sink.locations.get("options", sink.location))
        for sink in compiled.project.sinks
        if has_path_option(sink.options)
    ]
    why = "options go to Spark unchanged, so the path would be relative to the working directory"
    fix = 'write it as a key of the sink, for example path: "{{ model.name }}"'
    return [Problem(message, why, fix, location) for message, location in (*by_models, *by_sinks)]


@rule("missing-path")
def missing_sink_paths(compiled: CompiledProject) -> Problems:
    """A file sink needs a path."""
    return [
        Problem(
            f"sink `{output.sink}` has no path",
            f"a sink of {output.format} files writes to a folder"
            if format_of(output.format).is_file
            else f"a sink of format {output.format} writes to one file",
            'add a path, for example path: "{{ model.name }}"',
            output.location,
        )
        for output in declared_outputs(compiled)
        if format_of(output.format).writes_path and not output.path and not has_path_option(output.options)
    ]


@output_rule("output-mode")
def output_modes(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A file sink cannot replace single rows, so it does not support update mode."""
    mode = model.config.output_mode
    if model.streaming and format_of(output.format).writes_files and mode == "update":
        yield Problem(
            f"`{model.name}` streams in {mode} mode, which sink `{output.sink}` does not support",
            f"a row of {output.format} files cannot be replaced",
            "use output_mode='complete', which writes all rows in each batch; or 'append' (an aggregation then needs a "
            "watermark); or a sink that supports updates",
            model.location_of("output_mode"),
        )


@rule("shared-output")
def shared_outputs(compiled: CompiledProject) -> Problems:
    """Two queries must not share a checkpoint, an output folder or a table."""
    first_users: dict[tuple[str, str], tuple[str, str]] = {}
    storage = join(str(compiled.project.root), compiled.project.target.storage)
    outputs = terminal_models(compiled)
    paths = ((model, output, found) for model, output in outputs for found in _shareable(model, output, storage))
    for model, output, (key, what, value, path) in paths:
        # The sinks of one query share its checkpoint.
        user = model.name, "" if key == "checkpoint" else output.sink
        first = first_users.setdefault((what, path), user)
        if first != user:
            yield Problem(
                f"{_users(first, user)} have the same {what} `{value}`",
                _ONE_LOG if key == "checkpoint" or format_of(output.format).writes_files else _OVERWRITES,
                OWN_PATH[key],
                model.location_of(key),
            )


def _users(first: tuple[str, str], second: tuple[str, str]) -> str:
    """Returns the models that share a path or table, or the sinks of one model."""
    if first[0] == second[0]:
        return f"the sinks `{first[1]}` and `{second[1]}` of `{first[0]}`"
    return f"`{second[0]}` and `{first[0]}`"


def _shareable(model: CompiledModel, output: Output, storage: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields each path or table that a model writes: the key that sets it, a description, its text, its normal form."""
    facts = format_of(output.format)
    if (facts.writes_path or facts.is_table) and output.path:
        yield "sink", "output path", output.path, plain_path(storage, output.path)
    if output.database_table:
        server = next((str(value) for name, value in output.options.items() if name.lower() == "url"), "")
        yield "sink", "table", output.database_table, f"{server} {output.database_table}"
    if output.table:
        yield "sink", "table", output.table, output.table.replace("`", "").lower()
    checkpoint = model.config.checkpoint or f"queries/{model.query_id}"
    yield "checkpoint", "checkpoint", checkpoint, plain_path(storage, checkpoint)


@output_rule("real-time-trigger")
def short_real_time_triggers(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """The interval of a real-time trigger is the length of its batches and has a minimum."""
    trigger, shortest = model.config.trigger, model.config.trigger.facts.shortest_seconds
    if not model.streaming or not shortest or not rules_apply(compiled.project.target):
        return
    if interval_seconds(trigger.interval or "") < shortest:
        yield Problem(
            f"the real-time trigger of `{model.name}` is too short: {trigger.interval}",
            "the interval is the length of a batch, within which rows are written as they arrive; Spark needs at least "
            f"{shortest:g} seconds",
            "for example, use trigger={'real_time': '5 minutes'}",
            model.location_of("trigger"),
        )


@rule("relative-storage")
def relative_storage(compiled: CompiledProject) -> Problems:
    """A relative folder is a different folder on each machine of a cluster."""
    target = compiled.project.target
    if not target.is_local and not is_absolute(target.storage):
        yield Problem(
            f"target `{target.name}` runs on {target.master} but stores its data in the relative folder "
            f"`{target.storage}`",
            "each machine would write to its own folder",
            "set storage: to a URI that all machines can reach, such as s3a://bucket/folder or hdfs://host/folder",
            target.location,
        )


@rule("unsupported-target")
def storage_over_connect(compiled: CompiledProject) -> Problems:
    """Over Spark Connect, the storage must be a folder that this machine and the server share."""
    target = compiled.project.target
    if target.remote is None or not is_absolute(target.storage) or plain_path("/", target.storage).startswith("/"):
        return
    yield Problem(
        f"target `{target.name}` has `remote`, and its storage is {target.storage}",
        "sqlstream reads and writes ledgers and locks there, for which Spark Connect needs a shared folder",
        "use a folder that this machine and the server of Spark Connect share, or a target with a master",
        target.location,
    )
